"""Keeps manifest.json up to date while a run directory is written, and detects files that have
changed since."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from wsgiload.documents.base import decode_json
from wsgiload.foreign_files import MANIFEST, RUN_FILE, read_chunks, read_file, too_deep

NAME = "manifest.json"
SCHEMA_VERSION = 1


class FileDigest(msgspec.Struct, frozen=True, kw_only=True):
    """The size and checksum of a file when the manifest was written; a running cell may have
    appended to the file since then."""

    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The files by their path inside the run directory."""

    schema_version: int
    files: dict[str, FileDigest]


class Digests:
    """The checksums of the files, updated while the files grow."""

    def __init__(self) -> None:
        self._bytes: dict[str, int] = {}
        self._sha256: dict[str, hashlib._Hash] = {}

    def replaced(self, name: str, data: bytes) -> None:
        """The file was replaced by ``data``."""
        self._sha256[name], self._bytes[name] = hashlib.sha256(data), len(data)

    def appended(self, name: str, data: bytes) -> None:
        """``data`` was appended to the file."""
        self._sha256.setdefault(name, hashlib.sha256()).update(data)
        self._bytes[name] = self._bytes.get(name, 0) + len(data)

    def take(self, folder: Path, name: str) -> None:
        """Compute the checksum of an existing file."""
        self._sha256[name], self._bytes[name] = _digest(folder / name, None)

    def size_bytes(self, name: str) -> int | None:
        """The number of bytes that the checksum covers; None without a checksum."""
        return self._bytes.get(name)

    def forget(self, name: str) -> None:
        """Remove the file's checksum."""
        self._sha256.pop(name, None)
        self._bytes.pop(name, None)

    def manifest(self) -> Manifest:
        """The current content of manifest.json."""
        files = {
            name: FileDigest(bytes=self._bytes[name], sha256=digest.hexdigest())
            for name, digest in sorted(self._sha256.items())
        }
        return Manifest(schema_version=SCHEMA_VERSION, files=files)


def compared_files(folder: Path) -> Iterator[tuple[str, str | None]]:
    """Each file of the manifest with how it has changed since it was written, or None if it is
    exactly what was written; nothing without a manifest."""
    path = folder / NAME
    if not path.exists():
        return
    try:
        manifest = decode_json(read_file(MANIFEST, path), Manifest)
    except RecursionError as error:
        raise too_deep(path) from error
    except (ValueError, msgspec.MsgspecError) as error:
        yield NAME, f"is damaged, so changes to other files cannot be detected ({error})"
        return
    if manifest.schema_version != SCHEMA_VERSION:
        yield NAME, f"has schema version {manifest.schema_version}; this version reads 1"
        return
    for name, written in manifest.files.items():
        if (problem := _problem(folder, name, written)) is not None:
            yield name, problem
        elif (folder / name).stat().st_size == written.bytes:
            yield name, None


def _problem(folder: Path, name: str, written: FileDigest) -> str | None:
    path = folder / name
    try:
        if not path.resolve().is_relative_to(folder.resolve()):
            return "is listed in the manifest but lies outside the run directory"
        digest, size_bytes = _digest(path, written.bytes)
    except ValueError as error:
        return f"is not a file name: {error}"
    except FileNotFoundError:
        return "is missing"
    if size_bytes < written.bytes:
        return f"is truncated to {size_bytes:,} of {written.bytes:,} bytes"
    if digest.hexdigest() != written.sha256:
        return "was changed after it was written (checksum mismatch)"
    return None


def _digest(path: Path, max_bytes: int | None) -> tuple[hashlib._Hash, int]:
    """The checksum of the file or of its first ``max_bytes``, and the number of bytes that it
    covers."""
    digest, size_bytes = hashlib.sha256(), 0
    for chunk in read_chunks(RUN_FILE, path, max_bytes):
        digest.update(chunk)
        size_bytes += len(chunk)
    return digest, size_bytes
