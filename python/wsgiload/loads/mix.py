"""Files of weighted requests and of sessions, as the generator's plan takes them. Their format:
docs/requests.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from wsgiload._loadgen import read_sessions, read_targets
from wsgiload.documents.load_plan import SessionPlan, WeightedRequest
from wsgiload.errors import UsageError

# A file, or the entries themselves in the form in which the plan has them.
Mix = str | Path | Sequence[Mapping[str, object] | WeightedRequest | SessionPlan]

Entry = TypeVar("Entry", WeightedRequest, SessionPlan)


def targets_of(given: Mix | None) -> tuple[WeightedRequest, ...]:
    """The weighted requests of a file, or those that are given."""
    return _entries(given, read_targets, WeightedRequest)


def sessions_of(given: Mix | None) -> tuple[SessionPlan, ...]:
    """The sessions of a file, or those that are given."""
    return _entries(given, read_sessions, SessionPlan)


def _entries(
    given: Mix | None, read: Callable[[str | Path], str], kind: type[Entry]
) -> tuple[Entry, ...]:
    if given is None:
        return ()
    try:
        entries = msgspec.json.decode(read(given)) if isinstance(given, str | Path) else given
        return tuple(msgspec.convert(entry, kind) for entry in entries)
    except ValueError as error:  # of the generator's reader, and msgspec's
        raise UsageError(str(error)) from error
