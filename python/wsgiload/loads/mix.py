"""Reads files of weighted requests and of sessions. docs/requests.md describes their formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike, fspath
from typing import TypeVar

import msgspec

from wsgiload._loadgen import read_sessions, read_targets
from wsgiload.documents.load_plan import SessionPlan, WeightedRequest
from wsgiload.documents.typed import convert, decode_json
from wsgiload.errors import UsageError
from wsgiload.foreign_files import SESSIONS, TARGETS, FileKind, checked_input

Entry = TypeVar("Entry", WeightedRequest, SessionPlan)

# A file, or the entries themselves, typed or as plain data.
Targets = str | PathLike[str] | Sequence[WeightedRequest] | Sequence[Mapping[str, object]]
Sessions = str | PathLike[str] | Sequence[SessionPlan] | Sequence[Mapping[str, object]]


def targets_of(targets: Targets | None) -> tuple[WeightedRequest, ...]:
    """The weighted requests of a file, or those passed directly."""
    if isinstance(targets, str | PathLike):
        return _from_file(fspath(targets), TARGETS, read_targets, WeightedRequest)
    return tuple(_entry(entry, WeightedRequest) for entry in targets or ())


def sessions_of(sessions: Sessions | None) -> tuple[SessionPlan, ...]:
    """The sessions of a file, or those passed directly."""
    if isinstance(sessions, str | PathLike):
        return _from_file(fspath(sessions), SESSIONS, read_sessions, SessionPlan)
    return tuple(_entry(entry, SessionPlan) for entry in sessions or ())


def _from_file(
    path: str, file: FileKind, read: Callable[[str], str], kind: type[Entry]
) -> tuple[Entry, ...]:
    try:
        with checked_input(file, path):
            entries = read(path)
    except ValueError as error:
        raise UsageError(str(error)) from error
    return decode_json(entries, tuple[kind, ...])  # type: ignore[valid-type]


def _entry(entry: Entry | Mapping[str, object], kind: type[Entry]) -> Entry:
    if isinstance(entry, kind):
        return entry
    try:
        return convert(entry, kind)
    except msgspec.ValidationError as error:
        raise UsageError(f"{entry!r} is not an entry: {error}", "see docs/requests.md") from error
