"""Ending members and sessions by hand, where the kernel offers no better way."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wsgiload.limits import sweep


@contextmanager
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_members_never_include_ourselves_or_another_namespace(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "cgroup.procs").write_text(f"0\n1\n{os.getpid()}\n77777777\n")
    (tmp_path / "below/cgroup.procs").write_text("88888888\n")
    assert sweep.members_of([tmp_path, tmp_path / "absent"]) == [77777777, 88888888]


def test_without_group_kill_members_are_frozen_and_killed_one_by_one(tmp_path: Path) -> None:
    (tmp_path / "freezer.state").write_text("THAWED")
    with sleeper() as process:
        (tmp_path / "cgroup.procs").write_text(f"{process.pid}\n")
        assert sweep.end_members([tmp_path], timeout_s=0) == [
            process.pid
        ]  # the invented file keeps it
        assert process.wait(10) == -9
    assert (tmp_path / "freezer.state").read_text() == "THAWED"


def test_a_session_is_ended_whole_but_never_a_reused_number() -> None:
    with sleeper() as process:
        stat = sweep.process_stat(process.pid)
        assert stat is not None
        assert sweep.session_members(process.pid, stat[2]) == [process.pid]
        assert sweep.end_session(process.pid, stat[2] + 1) == []
        assert process.poll() is None
        assert sweep.end_session(process.pid, stat[2]) == []
        assert process.wait(10) == -9


def test_directories_that_stay_busy_are_reported(tmp_path: Path) -> None:
    (tmp_path / "group").mkdir()
    (tmp_path / "group/file").write_text("a real group has only kernel files")
    assert sweep.remove_directories([tmp_path / "group"], timeout_s=0) == [tmp_path / "group"]
    (tmp_path / "group/file").unlink()
    (tmp_path / "group/below").mkdir()
    assert sweep.remove_directories([tmp_path / "group", tmp_path / "gone"]) == []
    assert not (tmp_path / "group").exists()
