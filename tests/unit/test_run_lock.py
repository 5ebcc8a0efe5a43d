"""Only one process writes a run directory; the kernel releases the lock of a dead one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from wsgiload.errors import UsageError
from wsgiload.results import run_lock
from wsgiload.results.run_lock import exclusive

HOLD = """
import sys
from pathlib import Path
from wsgiload.results.run_lock import exclusive
with exclusive(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_the_second_process_is_refused_until_the_first_is_dead(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"held\n"
        with pytest.raises(UsageError) as refused, exclusive(tmp_path):
            pass
        assert f"is being written by process {owner.pid}; " in str(refused.value)
        assert f"`kill -INT {owner.pid}`" in str(refused.value)
        owner.kill()

    with (
        exclusive(tmp_path),
        pytest.raises(UsageError, match="is being written"),
        exclusive(tmp_path),
    ):
        pass


def test_without_the_kernels_list_the_owner_is_not_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_lock, "KERNEL_LOCKS", tmp_path / "missing")
    with (
        exclusive(tmp_path),
        pytest.raises(UsageError, match="written by another process; "),
        exclusive(tmp_path),
    ):
        pass


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "run").symlink_to(tmp_path)
    with pytest.raises(UsageError, match="cannot be opened"), exclusive(tmp_path / "run"):
        pass


def test_a_file_system_without_locks_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(descriptor: int, operation: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(run_lock.fcntl, "flock", flock)
    with exclusive(tmp_path), exclusive(tmp_path):
        pass
