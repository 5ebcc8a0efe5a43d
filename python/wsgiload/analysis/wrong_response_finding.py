"""The finding that comes before all others: servers that responded with errors. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from wsgiload.documents.answer import RankingLevel
from wsgiload.documents.cell_result import CellResult, server_of
from wsgiload.documents.load_report import Reason
from wsgiload.findings.wrong_responses import WRONG_RESPONSES

# From this share of a load's requests, wrong responses decide whether a level is sustained.
DECISIVE_SHARE = 0.01


def wrong_responses_of(cells: Sequence[CellResult]) -> dict[str, Reason]:
    """For each server with wrong responses, the finding of the trial that had most of them: its
    message contains the status and the start of the body."""
    worst: dict[str, tuple[float, Reason]] = {}
    for cell in cells:
        for reason in cell.verdict.reasons if cell.verdict is not None else ():
            if reason.check == WRONG_RESPONSES.name:
                share, name = wrong_share(cell), server_of(cell)
                if name not in worst or share > worst[name][0]:
                    worst[name] = (share, reason)
    return {name: reason for name, (_, reason) in worst.items()}


def errors_to_resolve(cells: Sequence[CellResult], level: RankingLevel) -> str | None:
    """What to do before a lower rate is tried: ``resolve the errors of a first: 840 of 1,000
    requests got an incorrect response (…)``; None if errors did not decide the level."""
    here = [
        cell
        for cell in cells
        if (cell.rate, cell.connections, cell.app) == (level.rate, level.connections, level.app)
        and wrong_share(cell) > DECISIVE_SHARE
    ]
    found = wrong_responses_of(here)
    if not found:
        return None
    name, reason = next(iter(found.items()))
    fix = f"; {reason.fix}" if reason.fix else ""
    return f"resolve the errors of {name} first: {reason.message}{fix}"


def wrong_share(cell: CellResult) -> float:
    """The share of the requests that got a wrong response."""
    outcomes = cell.outcomes
    if outcomes is None or not outcomes.scheduled:
        return 0.0
    return (outcomes.http_status + outcomes.bad_body) / outcomes.scheduled
