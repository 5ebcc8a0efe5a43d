"""Temporary directories for running servers, and removal of those that a killed orchestrator left.

A directory in use is locked. The kernel releases the lock when the process ends, so only unlocked
directories are removed.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from wsgiload.account import Account
from wsgiload.interrupts import uninterrupted

SHARED_MEMORY = Path("/dev/shm")
_NAME = re.compile(r"wsgiload-scratch-[0-9]+-.+")


def scratch_parents() -> list[Path]:
    """The directories in which scratch directories are created."""
    return [Path(tempfile.gettempdir()), SHARED_MEMORY]


def scratch_prefix(pid: int) -> str:
    """The prefix of the names of this process's scratch directories."""
    return f"wsgiload-scratch-{pid}-"


@contextmanager
def scratch_folder(parent: Path | None = None, owner: Account | None = None) -> Iterator[Path]:
    """A new directory in ``parent`` (default: the system's temporary directory) that belongs to
    ``owner`` (default: us), removed at the end of the block, even after an interrupt."""
    with ExitStack() as stack:
        with uninterrupted():
            folder = tempfile.TemporaryDirectory(prefix=scratch_prefix(os.getpid()), dir=parent)
            stack.callback(_remove, folder)
            fd = os.open(folder.name, os.O_RDONLY | os.O_DIRECTORY)
            stack.callback(os.close, fd)
            fcntl.flock(fd, fcntl.LOCK_EX)
            if owner is not None:
                os.fchown(fd, owner.uid, owner.gid)

        yield Path(folder.name)


def _remove(folder: tempfile.TemporaryDirectory[str]) -> None:
    with uninterrupted():
        folder.cleanup()


def remove_stale_scratch(folder: Path | None = None) -> list[str]:
    """Remove this user's scratch directories whose process has ended, and return their names."""
    removed = []
    parents = [folder] if folder is not None else scratch_parents()
    for path in sorted(path for parent in parents for path in parent.glob("wsgiload-scratch-*")):
        with suppress(OSError):
            if (
                _NAME.fullmatch(path.name)
                and os.geteuid() in (path.lstat().st_uid, 0)  # root's may belong to a --user
                and _is_abandoned(path)
            ):
                shutil.rmtree(path)
                removed.append(path.name)
    return removed


def _is_abandoned(path: Path) -> bool:
    pid = int(path.name.split("-")[2])
    if Path(f"/proc/{pid}").exists():
        return False
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False  # its process runs in another PID namespace, such as a container
    finally:
        os.close(fd)
    return True
