"""The boundary between stored bytes and typed documents: the only place that handles plain data.

Documents of version 1, and those of version 2 with old names, are migrated while they are read. All
other data are rejected with a one-line error that names the file. Encoding writes every key, so
that a missing measurement is ``null``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from wsgiload.documents.capacity import CapacityResult
from wsgiload.documents.load_plan import LoadPlan
from wsgiload.documents.load_report import LoadReport
from wsgiload.documents.migration import (
    migrate_capacity,
    migrate_load,
    migrate_run,
    migrate_summary,
)
from wsgiload.documents.renames import with_new_names
from wsgiload.documents.run_info import RunInfo
from wsgiload.documents.summary import Summary
from wsgiload.documents.typed import decode_json
from wsgiload.errors import UsageError
from wsgiload.foreign_text import visible, visible_json

SCHEMA_VERSION: Final = 2
# An earlier name of the check. Quotes inside a JSON string are escaped, so it never matches there.
_EARLIER_CHECK = re.compile(rb'("check"\s*:\s*)"settle"')
_NAME_A_RUN = "name a run directory, such as .wsgiload/runs/<run>"

T = TypeVar("T", LoadReport, Summary, CapacityResult, RunInfo)
Migration = Callable[[dict[str, Any]], dict[str, Any]]


class _Versioned(msgspec.Struct):
    """Any document; only its version is read."""

    schema_version: int | None = None


_TITLES: dict[type, str] = {
    LoadReport: "load report",
    Summary: "summary of a sweep",
    CapacityResult: "result of a capacity search",
    RunInfo: "description of a run",
}
_MIGRATIONS: dict[type, Migration] = {
    LoadReport: migrate_load,
    Summary: migrate_summary,
    CapacityResult: migrate_capacity,
    RunInfo: migrate_run,
}


def decode(kind: type[T], data: bytes | str, source: str) -> T:
    """The document of this kind; ``source`` names where the data comes from.

    Raises UsageError, in one line that names the source, if the data are not JSON, are not this
    kind of document, or have a newer version.
    """
    try:
        version = decode_json(data, _Versioned).schema_version
        return _decoded(kind, _current(kind, data, version, source))
    except msgspec.ValidationError as error:
        raise UsageError(f"{source} is not a valid {_TITLES[kind]}: {error}") from error
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise UsageError(f"{source} is not JSON: {error}") from error


def read(kind: type[T], path: Path) -> T:
    """The document in a file. Raises UsageError like ``decode``, and if the file cannot be read."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", _NAME_A_RUN) from error
    return decode(kind, data, str(path))


def encode(
    document: LoadPlan | LoadReport | Summary | CapacityResult | RunInfo, *, indent: int = 0
) -> str:
    """The document as JSON."""
    text = encode_bytes(document)
    return visible_json((msgspec.json.format(text, indent=indent) if indent else text).decode())


def encode_bytes(value: object, enc_hook: Callable[[object], object] | None = None) -> bytes:
    """Plain data as JSON. Lone surrogates (from file names or variables that are not UTF-8) are
    escaped, so that they cannot prevent a whole run from being stored."""
    try:
        return msgspec.json.encode(value, enc_hook=enc_hook)
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(value, enc_hook=enc_hook)
        return msgspec.json.encode(_encodable(plain))


def _encodable(value: object) -> object:
    match value:
        case str():
            return visible(value)
        case dict():
            return {_encodable(name): _encodable(one) for name, one in value.items()}
        case list() | tuple():
            return [_encodable(one) for one in value]
    return value


def to_plain(document: msgspec.Struct) -> dict[str, Any]:
    """The document as plain dictionaries, lists, numbers and strings, for use outside wsgiload."""
    # By way of JSON, so that tuples become lists.
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(document))
    return plain


def _current(kind: type[T], data: bytes | str, version: int | None, source: str) -> bytes | str:
    """The data in the current version."""
    if version is not None and version > SCHEMA_VERSION:
        raise UsageError(
            f"{source} has schema version {version}, but this wsgiload reads only up to "
            f"{SCHEMA_VERSION}",
            "read it with the version of wsgiload that wrote it, or a newer one",
        )
    if version != 1:
        return _with_current_checks(data)
    try:
        return msgspec.json.encode(_MIGRATIONS[kind](msgspec.json.decode(data)))
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise UsageError(f"{source} is not a valid {_TITLES[kind]}: {error!r}") from error


def _decoded(kind: type[T], data: bytes | str) -> T:
    """The document; old names of version 2 are accepted."""
    try:
        return decode_json(data, kind)
    except msgspec.ValidationError:
        renamed = with_new_names(kind, msgspec.json.decode(data))
        return decode_json(msgspec.json.encode(renamed), kind)


def _with_current_checks(data: bytes | str) -> bytes:
    """The data with the current name of a renamed check."""
    plain = data.encode() if isinstance(data, str) else data
    return _EARLIER_CHECK.sub(rb'\1"host-not-idle"', plain)
