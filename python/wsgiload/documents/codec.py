"""The boundary between stored bytes and typed documents: the only place that handles plain data and
decodes histograms.

Other data are rejected with a one-line error that names the file. Encoding writes every key, so
that a missing measurement is ``null``.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from wsgiload._loadgen import Histogram
from wsgiload.documents.base import decode_json
from wsgiload.documents.capacity import CapacityResult
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.load_plan import LoadPlan
from wsgiload.documents.load_report import Distribution, LoadReport
from wsgiload.documents.run_info import RunInfo
from wsgiload.documents.summary import Summary
from wsgiload.errors import UsageError
from wsgiload.foreign_files import (
    CAPACITY,
    LOAD_REPORT,
    RUN_INFO,
    SUMMARY,
    FileKind,
    read_file,
    require_entries,
    too_deep,
)
from wsgiload.foreign_text import visible, visible_json

SCHEMA_VERSION: Final = 1
_NAME_A_RUN = "name a run directory, such as .wsgiload/runs/<run>"

T = TypeVar("T", LoadReport, Summary, CapacityResult, RunInfo, CellResult)


class _Versioned(msgspec.Struct):
    """Any document; only its version is read."""

    schema_version: int | None = None


_TITLES: dict[type, str] = {
    LoadReport: "load report",
    Summary: "summary of a sweep",
    CellResult: "result of a cell",
    CapacityResult: "result of a capacity search",
    RunInfo: "description of a run",
}
_FILES: dict[type, FileKind] = {
    LoadReport: LOAD_REPORT,
    Summary: SUMMARY,
    CapacityResult: CAPACITY,
    RunInfo: RUN_INFO,
}


def decode(kind: type[T], data: bytes | str, source: str) -> T:
    """The document of this kind; ``source`` names where the data comes from.

    Raises UsageError, in one line that names the source, if the data are not JSON, are not this
    kind of document, or have a newer version.
    """
    try:
        version = decode_json(data, _Versioned).schema_version
        _require_readable(version, source)
        return decode_json(data, kind)
    except msgspec.ValidationError as error:
        raise UsageError(f"{source} is not a valid {_TITLES[kind]}: {error}") from error
    except RecursionError as error:
        raise too_deep(source) from error
    except (msgspec.DecodeError, UnicodeError) as error:
        raise UsageError(f"{source} is not JSON: {error}") from error


def read(kind: type[T], path: Path) -> T:
    """The document in a file. Raises UsageError like ``decode``, and if the file is missing or
    refused."""
    try:
        data = read_file(_FILES[kind], path)
    except FileNotFoundError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", _NAME_A_RUN) from error
    document = decode(kind, data, str(path))
    if isinstance(document, Summary):
        require_entries(SUMMARY, path, len(document.cells))
    return document


class _SummaryParts(Summary, frozen=True, kw_only=True):
    """A summary whose cells are not decoded."""

    cells: tuple[msgspec.Raw, ...]  # type: ignore[assignment]


def read_cellwise(path: Path, keep: Callable[[CellResult], CellResult]) -> Summary:
    """A summary of which only what ``keep`` returns of each cell stays in memory. Raises like
    ``read``."""
    try:
        parts = decode_json(read_file(SUMMARY, path), _SummaryParts)
        require_entries(SUMMARY, path, len(parts.cells))
        cells = tuple(keep(decode_json(bytes(cell), CellResult)) for cell in parts.cells)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, FileNotFoundError):
        return read(Summary, path)  # names what is wrong with the whole document
    others = {name: getattr(parts, name) for name in parts.__struct_fields__ if name != "cells"}
    return Summary(**others, cells=cells)


def encode(
    document: LoadPlan | LoadReport | Summary | CellResult | CapacityResult | RunInfo,
    *,
    indent: int = 0,
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


def _require_readable(version: int | None, source: str) -> None:
    if version is not None and version > SCHEMA_VERSION:
        raise UsageError(
            f"{source} has schema version {version}, but this wsgiload reads only up to "
            f"{SCHEMA_VERSION}",
            "read it with the version of wsgiload that wrote it, or a newer one",
        )


def histogram_of(distribution: Distribution | None) -> Histogram | None:
    """The whole histogram; None if nothing was measured or no histogram was stored."""
    if distribution is None or distribution.hdr_v2 is None:
        return None
    return Histogram.from_hdr_v2(base64.b64decode(distribution.hdr_v2))
