"""manifest.json: the checksum of every file of a run directory, as it was last finished."""

from __future__ import annotations

import msgspec


class FileDigest(msgspec.Struct, frozen=True, kw_only=True):
    """A file as far as it was finished; a cell that was under way may have added to it since."""

    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The files by their path inside the run directory."""

    schema_version: int
    files: dict[str, FileDigest]
