"""Ending the processes of groups and sessions one by one, where the kernel has no better way."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wsgiload.limits import sweep


@contextmanager
def sleeping_process() -> Iterator[subprocess.Popen[bytes]]:
    """A process in a new session."""
    with subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_members_exclude_ourselves_and_processes_of_other_namespaces(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "cgroup.procs").write_text(f"0\n1\n{os.getpid()}\n77777777\n")
    (tmp_path / "below/cgroup.procs").write_text("88888888\n")
    assert sweep.members_of([tmp_path, tmp_path / "missing"]) == [77777777, 88888888]


def test_without_cgroup_kill_members_are_frozen_and_killed_one_by_one(tmp_path: Path) -> None:
    (tmp_path / "freezer.state").write_text("THAWED")
    with sleeping_process() as process:
        (tmp_path / "cgroup.procs").write_text(f"{process.pid}\n")
        # The fake cgroup.procs still lists the killed process.
        assert sweep.end_members([tmp_path], timeout_s=0) == [process.pid]
        assert process.wait(10) == -9
    assert (tmp_path / "freezer.state").read_text() == "THAWED"


def test_a_session_is_ended_unless_its_pid_was_reused() -> None:
    with sleeping_process() as process:
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
    assert sweep.remove_directories([tmp_path / "group", tmp_path / "missing"]) == []
    assert not (tmp_path / "group").exists()
