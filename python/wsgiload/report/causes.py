"""Lines for the first screen: why a server gave no result, and what servers wait for although their
CPU is idle. Pure, from a summary."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import shorten

from wsgiload.documents.answer import RankingEntry, RankingLevel
from wsgiload.documents.cell_result import CellFailure, CellResult, server_of
from wsgiload.documents.load_report import Reason
from wsgiload.findings.alarms import IDLE_SERVER
from wsgiload.findings.limiting_variable import limiting_variables
from wsgiload.findings.services import BUSY_SERVICE
from wsgiload.report import words
from wsgiload.units import level_words

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


# In this order, because a busy service is a known bottleneck and an idle server is not.
_CHECKS = (BUSY_SERVICE.name, IDLE_SERVER.name)


def bottleneck_lines(cells: Sequence[CellResult]) -> list[str]:
    """For each kind of bottleneck, the finding at the lowest load level and the other affected
    servers; then environment variables that limit a server."""
    by_check: dict[str, dict[str, str]] = {}
    for cell in sorted(cells, key=_load):
        reason = _bottleneck(cell)
        if reason is not None:
            where = f"{server_of(cell)} at {level_words(cell.rate, cell.connections)}"
            by_server = by_check.setdefault(reason.check, {})
            by_server.setdefault(server_of(cell), f"{where}: {reason.message}")
    lines = [_line(check, by_check[check]) for check in _CHECKS if check in by_check]
    return [*lines, *(fired.message for fired in limiting_variables(cells))]


def _load(cell: CellResult) -> float:
    return cell.rate if cell.rate is not None else float(cell.connections or 0)


def _bottleneck(cell: CellResult) -> Reason | None:
    if cell.verdict is None:
        return None
    reasons = {reason.check: reason for reason in cell.verdict.reasons}
    return next((reasons[check] for check in _CHECKS if check in reasons), None)


def _line(check: str, messages: dict[str, str]) -> str:
    first, *others = messages
    also = f". The same applies to {words.join_names(others)}" if others else ""
    return f"{messages[first]} ({check}){also}"
