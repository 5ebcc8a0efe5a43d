"""Whether an experiment answered its question: an objective, or a race. Pure, from a summary."""

from __future__ import annotations

from collections.abc import Sequence

from wsgiload.analysis.wrong_response_finding import errors_to_resolve
from wsgiload.documents.over_cells import Race
from wsgiload.documents.recommendation import Recommendation
from wsgiload.documents.summary import Summary


def is_unanswered(summary: Summary) -> bool:
    """Whether an objective has neither a certain recommendation nor a certain miss; or, without an
    objective, the race of an app has no outcome at the highest rate that a server sustained; or,
    without a race, no server is ranked because of errors."""
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
