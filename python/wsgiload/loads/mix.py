"""Files of weighted requests and of sessions, as the generator's plan takes them. Their format:
docs/requests.md."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from wsgiload._loadgen import read_sessions, read_targets
from wsgiload.errors import UsageError

Json = dict[str, Any]
# A file, or the entries themselves in the form in which the plan has them.
Mix = str | Path | Sequence[Mapping[str, Any]]


def targets_of(given: Mix | None) -> tuple[Json, ...]:
    """The weighted requests of a file, or those that are given."""
    return _entries(given, read_targets)


def sessions_of(given: Mix | None) -> tuple[Json, ...]:
    """The sessions of a file, or those that are given."""
    return _entries(given, read_sessions)


def _entries(given: Mix | None, read: Callable[[str | Path], str]) -> tuple[Json, ...]:
    if given is None:
        return ()
    if not isinstance(given, str | Path):
        return tuple(dict(entry) for entry in given)
    try:
        return tuple(json.loads(read(given)))
    except ValueError as error:
        raise UsageError(str(error)) from error
