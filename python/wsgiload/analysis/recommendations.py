"""The recommendations of a summary: one for each app, or the reason why there is none. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wsgiload.analysis.recommend import Entry, by_app
from wsgiload.documents.recommendation import (
    NoRecommendation,
    Recommendation,
    RecommendedConfiguration,
)


def recommendations(
    entries: Sequence[Entry],
    judge: Callable[[Sequence[Entry]], RecommendedConfiguration | NoRecommendation],
    objective: Sequence[str],
) -> tuple[Recommendation, ...]:
    """The result of ``judge`` for the entries of each app: cells of a summary, or entries of a
    capacity document."""
    return tuple(
        _recommendation(app, tuple(objective), judge(of_app))
        for app, of_app in by_app(entries).items()
    )


def _recommendation(
    app: str | None, objective: tuple[str, ...], result: RecommendedConfiguration | NoRecommendation
) -> Recommendation:
    return Recommendation(
        app=app,
        objective=objective,
        recommended=result if isinstance(result, RecommendedConfiguration) else None,
        no_recommendation=result if isinstance(result, NoRecommendation) else None,
    )
