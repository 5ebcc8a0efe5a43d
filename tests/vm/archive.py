"""Writes cpio archives (format "newc"), which the kernel unpacks into its first file system, one
after another."""

from __future__ import annotations

import stat
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO, Self

TRAILER = "TRAILER!!!"


class Archive:
    """One archive; names are absolute paths of the guest."""

    def __init__(self, path: Path, directories: set[str] | None = None) -> None:
        self.directories = {"/"} if directories is None else set(directories)
        self._stream: IO[bytes] = path.open("wb")
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._write(TRAILER, 0)
        self._stream.close()

    def add(
        self,
        name: str,
        mode: int,
        data: bytes = b"",
        *,
        mtime: int = 0,
        owner: int = 0,
        device: tuple[int, int] = (0, 0),
    ) -> None:
        """Add an entry after the folders above it. A folder that is there already is left as it
        is."""
        self._add_folders(str(Path(name).parent))
        if stat.S_ISDIR(mode):
            if name in self.directories:
                return
            self.directories.add(name)
        self._write(name.lstrip("/"), mode, data, mtime=mtime, owner=owner, device=device)

    def add_path(self, path: Path, name: str | None = None) -> None:
        """Add a file, link or empty folder of this machine, by default under its own name."""
        found = path.lstat()
        data = b""
        if stat.S_ISLNK(found.st_mode):
            data = str(path.readlink()).encode()
        elif stat.S_ISREG(found.st_mode):
            data = path.read_bytes()
        # whoever runs the guest's tests must be able to read it
        mode = found.st_mode | (0o555 if found.st_mode & 0o100 else 0o444)
        self.add(name or str(path), mode, data, mtime=int(found.st_mtime))

    def add_tree(self, folder: Path, wanted: Callable[[Path], bool]) -> None:
        """Add a folder and what is ``wanted`` in it; nothing below an unwanted folder is looked
        at."""
        self.add_path(folder)
        for entry in sorted(folder.iterdir()):
            if not wanted(entry):
                continue
            if entry.is_dir() and not entry.is_symlink():
                self.add_tree(entry, wanted)
            else:
                self.add_path(entry)

    def add_tar(self, path: Path) -> None:
        """Add everything in a tar archive."""
        with tarfile.open(path) as tar:
            for member in tar:
                self._add_member(tar, member)

    def _add_member(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        kinds = {
            tarfile.DIRTYPE: stat.S_IFDIR,
            tarfile.SYMTYPE: stat.S_IFLNK,
            tarfile.CHRTYPE: stat.S_IFCHR,
            tarfile.BLKTYPE: stat.S_IFBLK,
        }
        data = b""
        if member.issym():
            data = member.linkname.encode()
        elif content := tar.extractfile(
            member
        ):  # follows hard links, of which the copy becomes a file
            data = content.read()
        name = "/" + member.name.removeprefix("./").strip("/").removeprefix(".")
        mode = kinds.get(member.type, stat.S_IFREG) | member.mode
        device = (member.devmajor, member.devminor) if member.isdev() else (0, 0)
        self.add(name, mode, data, mtime=int(member.mtime), owner=member.uid, device=device)

    def _add_folders(self, folder: str) -> None:
        if folder not in self.directories:
            self.add(folder, stat.S_IFDIR | 0o755)

    def _write(
        self,
        name: str,
        mode: int,
        data: bytes = b"",
        *,
        mtime: int = 0,
        owner: int = 0,
        device: tuple[int, int] = (0, 0),
    ) -> None:
        self._count += 1
        fields = (
            self._count,
            mode,
            owner,
            owner,
            1,
            mtime,
            len(data),
            0,
            0,
            *device,
            len(name.encode()) + 1,
            0,
        )
        header = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
        self._stream.write(header + bytes(-len(header) % 4) + data + bytes(-len(data) % 4))
