"""Scratch directories are removed after their block, or by a later run if it was killed."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from wsgiload.scratch import remove_stale_scratch, scratch_folder


@pytest.fixture(autouse=True)
def temp_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture(scope="module")
def dead_pid() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    return process.pid


def test_a_directory_exists_only_during_its_block(temp_directory: Path) -> None:
    with scratch_folder() as folder:
        assert folder.parent == temp_directory
        (folder / "socket").touch()
        assert remove_stale_scratch() == [], "its owner is alive"
    assert list(temp_directory.iterdir()) == []


@pytest.mark.parametrize("step", ["fcntl.flock", "shutil.rmtree"])
def test_an_interrupt_at_any_step_leaves_no_directory(
    temp_directory: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    module, name = step.split(".")
    original = getattr(sys.modules[module], name)

    def interrupted(*arguments: object, **keywords: object) -> object:
        signal.raise_signal(signal.SIGINT)
        return original(*arguments, **keywords)

    monkeypatch.setattr(step, interrupted)
    with pytest.raises(KeyboardInterrupt), scratch_folder() as folder:
        (folder / "socket").touch()
    assert list(temp_directory.iterdir()) == []


def test_only_directories_of_dead_processes_are_removed(
    temp_directory: Path, dead_pid: int
) -> None:
    stale, other = (
        temp_directory / f"wsgiload-scratch-{dead_pid}-abc",
        temp_directory / "wsgiload-scratch-notes",
    )
    for folder in (stale, other):
        folder.mkdir()
        (folder / "file").touch()

    assert remove_stale_scratch() == [stale.name]
    assert list(temp_directory.iterdir()) == [other]


def test_a_locked_directory_is_not_removed(temp_directory: Path, dead_pid: int) -> None:
    locked = temp_directory / f"wsgiload-scratch-{dead_pid}-abc"
    locked.mkdir()
    descriptor = os.open(locked, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    assert remove_stale_scratch() == []
    os.close(descriptor)
    assert remove_stale_scratch() == [locked.name]
