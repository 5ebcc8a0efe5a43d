"""Why a server gave no result, in one line. Pure, from a summary."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import shorten

from wsgiload.documents.answer import RankingEntry, RankingLevel
from wsgiload.documents.cell_result import CellFailure, CellResult, server_of
from wsgiload.report import words

MAX_CAUSE_CHARACTERS = 160
MAX_FIX_CHARACTERS = 400


def cause_of_no_result(
    entry: RankingEntry, level: RankingLevel, cells: Sequence[CellResult]
) -> str:
    """Why a server gave no result at this level, in one line."""
    here = [
        cell
        for cell in cells
        if server_of(cell) == entry.label
        and (cell.rate, cell.connections, cell.app) == (level.rate, level.connections, level.app)
    ]
    for cell in here:
        if cell.failure is not None:
            return cause_of_failure(cell.failure).removeprefix(f"{entry.label}: ")
    for cell in here:
        if cell.outcomes is not None:
            kinds = words.failures_by_kind(cell.outcomes).items()
            counts = ", ".join(f"{kind}: {words.format_count(count)}" for kind, count in kinds)
            return f"no correct response ({counts})"
    return words.NOT_MEASURED


def cause_of_failure(failure: CellFailure) -> str:
    """The first line of the failure's message."""
    lines = failure.message.strip().splitlines() or [failure.step]
    return _shortened(lines[0])


def _shortened(message: str) -> str:
    """The message with a shortened cause. A fix of up to ``MAX_FIX_CHARACTERS`` stays complete,
    because users paste it."""
    cause, _, fix = message.rpartition("; ")
    if not cause or len(fix) > MAX_FIX_CHARACTERS:
        return shorten(message, MAX_CAUSE_CHARACTERS, placeholder=" …")
    return words.with_fix(shorten(cause, MAX_CAUSE_CHARACTERS, placeholder=" …"), fix)
