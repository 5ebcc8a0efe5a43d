"""The folder that a server may write into while it runs; and what a killed orchestrator left of
such folders.

A folder in use is locked, and the kernel lets go of the lock with its process: only what nobody
holds is removed.
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

from wsgiload.interrupts import uninterrupted

SHARED_MEMORY = Path("/dev/shm")
_NAME = re.compile(r"wsgiload-scratch-[0-9]+-.+")


def parents_of_folders() -> list[Path]:
    """Where such folders are made."""
    return [Path(tempfile.gettempdir()), SHARED_MEMORY]


def prefix_of_folders(pid: int) -> str:
    """How the names of all folders of this process begin."""
    return f"wsgiload-scratch-{pid}-"


@contextmanager
def scratch_folder(parent: Path | None = None) -> Iterator[Path]:
    """A fresh folder, removed at the end of the block even if an interrupt comes meanwhile; in the
    system's folder for temporary files unless another is given."""
    with ExitStack() as held:
        with uninterrupted():
            folder = tempfile.TemporaryDirectory(prefix=prefix_of_folders(os.getpid()), dir=parent)
            held.callback(_remove, folder)
            descriptor = os.open(folder.name, os.O_RDONLY | os.O_DIRECTORY)
            held.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)

        yield Path(folder.name)


def _remove(folder: tempfile.TemporaryDirectory[str]) -> None:
    with uninterrupted():
        folder.cleanup()


def remove_stale_scratch(folder: Path | None = None) -> list[str]:
    """Remove the folders of ours that no living process holds; their names."""
    removed = []
    places = [folder] if folder is not None else parents_of_folders()
    for path in sorted(path for place in places for path in place.glob("wsgiload-scratch-*")):
        with suppress(OSError):
            if (
                _NAME.fullmatch(path.name)
                and path.lstat().st_uid == os.geteuid()
                and _is_abandoned(path)
            ):
                shutil.rmtree(path)
                removed.append(path.name)
    return removed


def _is_abandoned(path: Path) -> bool:
    maker = int(path.name.split("-")[2])
    if Path(f"/proc/{maker}").exists():
        return False
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False  # its maker lives where we cannot see it: in another container
    finally:
        os.close(descriptor)
    return True
