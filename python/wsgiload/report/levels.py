"""The load levels that the answer is about. Pure, from a summary."""

from __future__ import annotations

from collections.abc import Sequence

from wsgiload.documents.answer import RankingEntry, RankingLevel
from wsgiload.documents.summary import Summary


def by_app(ranking: Sequence[RankingLevel]) -> list[tuple[RankingLevel, ...]]:
    """The levels of each app, because different apps are not compared."""
    apps = dict.fromkeys(level.app for level in ranking)
    return [tuple(level for level in ranking if level.app == app) for app in apps] or [()]


def main_level(ranking: Sequence[RankingLevel]) -> RankingLevel | None:
    """The highest level that any server sustained."""
    with_ranked = (level for level in ranking if ranked(level))
    return next(with_ranked, None)


def ranked(level: RankingLevel) -> list[RankingEntry]:
    """The servers that sustained the level in a valid measurement, the best first."""
    return [entry for entry in level.entries if entry.status == "ranked"]


def decisive_levels(ranking: Sequence[RankingLevel], summary: Summary) -> list[RankingLevel]:
    """The level of each app that the answer is about: the rate of the recommendation, or the
    highest that any server sustained."""
    rates = {
        one.app: one.recommended.rate_per_s
        for one in summary.recommendations or ()
        if one.recommended is not None
    }
    return [
        next(
            (one for one in levels if one.rate is not None and one.rate == rates.get(one.app)), None
        )
        or main_level(levels)
        or levels[0]
        for levels in by_app(ranking)
        if levels
    ]
