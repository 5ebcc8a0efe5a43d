"""Lines for the first screen about servers that wait although their CPU is idle: for a supporting
service, a connection to one, or a thread. Pure, from the cells' verdicts."""

from __future__ import annotations

from collections.abc import Sequence

from wsgiload.documents.cell_result import CellResult, server_of
from wsgiload.documents.load_report import Reason
from wsgiload.findings.alarms import IDLE_SERVER
from wsgiload.findings.limiting_variable import limiting_variables
from wsgiload.findings.services import BUSY_SERVICE
from wsgiload.report import words
from wsgiload.units import level_words

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
