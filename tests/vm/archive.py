"""Writes cpio archives (format "newc"), which the kernel unpacks one after another into its initial
file system."""

from __future__ import annotations

import stat
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO, Self

TRAILER = "TRAILER!!!"


class Archive:
    """One archive. Names are absolute paths in the guest."""

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
        """Add an entry after its parent directories. An existing directory is not changed."""
        self._add_directory(str(Path(name).parent))
        if stat.S_ISDIR(mode):
            if name in self.directories:
                return
            self.directories.add(name)
        self._write(name.lstrip("/"), mode, data, mtime=mtime, owner=owner, device=device)

    def add_path(self, path: Path, name: str | None = None) -> None:
        """Add a file, link or empty directory of this machine, by default under the same name."""
        status = path.lstat()
        data = b""
        if stat.S_ISLNK(status.st_mode):
            data = str(path.readlink()).encode()
        elif stat.S_ISREG(status.st_mode):
            data = path.read_bytes()

        # Every user of the guest must be able to read it.
        mode = status.st_mode | (0o555 if status.st_mode & 0o100 else 0o444)
        self.add(name or str(path), mode, data, mtime=int(status.st_mtime))

    def add_tree(self, directory: Path, is_included: Callable[[Path], bool]) -> None:
        """Add a directory and its entries for which ``is_included`` is true. Excluded directories
        are not searched."""
        self.add_path(directory)
        for entry in sorted(directory.iterdir()):
            if not is_included(entry):
                continue
            if entry.is_dir() and not entry.is_symlink():
                self.add_tree(entry, is_included)
            else:
                self.add_path(entry)

    def add_tar(self, path: Path) -> None:
        """Add all members of a tar archive."""
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
        # A hard link is followed and becomes a copy of the file.
        elif content := tar.extractfile(member):
            data = content.read()

        name = "/" + member.name.removeprefix("./").strip("/").removeprefix(".")
        mode = kinds.get(member.type, stat.S_IFREG) | member.mode
        device = (member.devmajor, member.devminor) if member.isdev() else (0, 0)
        self.add(name, mode, data, mtime=int(member.mtime), owner=member.uid, device=device)

    def _add_directory(self, directory: str) -> None:
        if directory not in self.directories:
            self.add(directory, stat.S_IFDIR | 0o755)

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
        name_bytes = name.encode() + b"\0"
        # Inode number, mode, user, group, links and time; then sizes and devices.
        status = (self._count, mode, owner, owner, 1, mtime)
        fields = (*status, len(data), 0, 0, *device, len(name_bytes), 0)
        header = b"070701" + b"".join(b"%08X" % field for field in fields) + name_bytes
        self._stream.write(header + bytes(-len(header) % 4) + data + bytes(-len(data) % 4))
