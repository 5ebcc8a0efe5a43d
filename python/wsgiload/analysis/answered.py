"""Whether an experiment answered its question: an objective, or a race; and what comes before all
other findings: servers that responded with errors. Pure, from a summary."""

from __future__ import annotations

from collections.abc import Sequence

from wsgiload.documents.answer import RankingLevel, Recommendation
from wsgiload.documents.cell_result import CellResult, server_of
from wsgiload.documents.load_report import Reason
from wsgiload.documents.over_cells import Race
from wsgiload.documents.summary import Summary
from wsgiload.findings.wrong_responses import WRONG_RESPONSES


def is_unanswered(summary: Summary) -> bool:
    """Whether nothing was measured; or an objective has neither a certain recommendation nor a
    certain miss; or, without an objective, the race of an app has no outcome at the highest rate
    that a server sustained; or, without a race, no server is ranked because of errors."""
    if not summary.cells:
        return True
    if summary.recommendations:
        return are_open(summary.recommendations)
    if not summary.races:
        return _is_prevented_by_errors(summary)
    if summary.answer is not None:
        return summary.answer.status == "undecided"
    by_app: dict[str | None, list[Race]] = {}
    for race in summary.races or ():
        by_app.setdefault(race.app, []).append(race)
    return any(_is_undecided(races) for races in by_app.values())


def are_open(recommendations: Sequence[Recommendation]) -> bool:
    """Whether the objective of an app has neither a certain recommendation nor a certain miss."""
    return any(
        (one.no_recommendation is not None and not one.no_recommendation.is_missed)
        or (one.recommended is not None and one.recommended.needs is not None)
        for one in recommendations
    )


def _is_prevented_by_errors(summary: Summary) -> bool:
    ranking = summary.answer.ranking if summary.answer is not None else ()
    if any(entry.status == "ranked" for level in ranking for entry in level.entries):
        return False
    return any(errors_to_resolve(summary.cells, level) for level in ranking)


def _is_undecided(races: list[Race]) -> bool:
    highest_first = sorted(races, key=lambda race: -(race.rate or race.connections or 0.0))
    decisive = next((race for race in highest_first if race.outcome != "failed"), None)
    return decisive is None or decisive.outcome == "undecided"


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
