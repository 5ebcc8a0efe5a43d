"""The lock of a run directory: only one process writes it. Reading needs no lock."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wsgiload.errors import UsageError

KERNEL_LOCKS = Path("/proc/locks")


@contextmanager
def exclusive(run_dir: Path) -> Iterator[None]:
    """Lock the run directory during the block. Raises UsageError if another process holds the lock.

    The kernel releases the lock when its owner dies. On file systems that cannot lock a directory,
    there is no lock.
    """
    try:
        descriptor = os.open(run_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise UsageError(
            f"{run_dir} cannot be opened: {error.strerror}",
            "name a run directory, such as .wsgiload/runs/<run>",
        ) from error
    try:
        _lock(descriptor, run_dir)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, run_dir: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = _owner(os.fstat(descriptor).st_ino)
        who = "another process" if owner is None else f"process {owner}"
        stop = "" if owner is None else f", or stop it with `kill -INT {owner}`"
        raise UsageError(
            f"{run_dir} is being written by {who}", f"wait until that process has ended{stop}"
        ) from None
    except OSError:
        return


def _owner(inode: int) -> int | None:
    """The process that holds the lock; None if the kernel does not tell."""
    try:
        lines = KERNEL_LOCKS.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        # 1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF
        match line.split():
            case [_, "FLOCK", _, "WRITE", pid, place, *_] if place.endswith(f":{inode}"):
                return int(pid) if int(pid) > 0 else None
    return None
