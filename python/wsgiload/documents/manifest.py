"""manifest.json: the size and checksum of every file of a run directory."""

from __future__ import annotations

import msgspec


class FileDigest(msgspec.Struct, frozen=True, kw_only=True):
    """The size and checksum of a file when the manifest was written; a running cell may have
    appended to the file since then."""

    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The files by their path inside the run directory."""

    schema_version: int
    files: dict[str, FileDigest]
