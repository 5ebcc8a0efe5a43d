"""The question that an experiment answers, the load levels that the answer is about, and the
outcome of a race in sentences. Pure, from a summary."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from wsgiload.analysis.effective_limit import effective_limit
from wsgiload.analysis.races import race_at
from wsgiload.documents.answer import RankingEntry, RankingLevel
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.over_cells import Race, RaceStanding
from wsgiload.documents.summary import Summary
from wsgiload.report import words
from wsgiload.report.cells import HEADLINE
from wsgiload.report.recommendation import enough_s


def question_of(summary: Summary, level: RankingLevel | None) -> str:
    """The question of an experiment, about this load level."""
    experiment = summary.experiment
    inside = limits_words(summary)
    if experiment.slo:
        objective = " and ".join(experiment.slo)
        return f"Which server, with which settings, meets {objective} at the highest rate{inside}?"
    where = f" at {level.level}" if level is not None else ""
    count = _competitors(summary, level) if level is not None else 0
    figure = "the highest goodput" if level and level.rate is None else "the lowest p99"
    if count == 1 and level is not None:
        return f"How does {level.entries[0].label} perform{where}{inside}?"
    which = f"Which of {count} servers" if count else "Which server"
    return f"{which} has {figure}{where}{inside}?"


def _competitors(summary: Summary, level: RankingLevel) -> int:
    """The number of planned servers, including those that dropped out of a race or were not
    reached."""
    absent = len(words.servers_without_cells(summary))
    race = race_at(summary.races, level)
    if race is None:
        return len({entry.label for entry in level.entries}) + absent
    return len(race.contenders) + len(race.dropped_out) + absent


def limits_words(summary: Summary) -> str:
    """ " with 2 CPUs and 512 MiB"; only enforced limits are named."""
    cpus = _enforced_limit(summary.cells, "cpus")
    memory = _enforced_limit(summary.cells, "memory_bytes")
    limits = words.limits_words(cpus, memory)
    return f" with {limits}" if limits else ""


def _enforced_limit(
    cells: Sequence[CellResult], name: Literal["cpus", "memory_bytes"]
) -> float | None:
    """The limit if it was enforced equally in all cells that got as far as applying limits."""
    limits = {effective_limit(cell.limits, name) for cell in cells if cell.limits is not None}
    return limits.pop() if len(limits) == 1 else None


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


STATUSES: dict[str, Literal["decided", "tie", "undecided"]] = {
    "winner": "decided",
    "ties": "tie",
    "leader": "decided",
    "undecided": "undecided",
    "failed": "undecided",
}
MAX_SHOWN = 3
# Wider intervals are not worth printing; larger factors have one decimal.
UNKNOWN_FACTOR, LARGE_FACTOR = 20.0, 10.0
NOBODY = "Every server failed at this load level: too many requests got no correct response."
# Suggested budget factor if the remaining rounds are unknown.
_TIMES_AS_LONG = 2


def outcome_words(race: Race, leader: str, what: str, lead: str, margin: float) -> str:
    """``a has the lowest p99 at 400/s: 5.1 ms. Behind it: b (1.31× [1.18, 1.45]).``"""
    near = [one for one in race.standings if one.server in race.contenders]
    tied = [one for one in near if one.relation == "tied"]
    still_open = [one for one in near if one.relation != "tied"]
    within = f"within {100 * margin:.0f} %"
    if race.outcome == "winner":
        parts = [f"{leader} has {what}: {lead}."]
    elif race.outcome == "ties":
        parts = [f"{_listed([leader, *_with_ratio(tied)])} are tied {within} for {what}: {lead}."]
    elif race.outcome == "leader":
        parts = [f"{leader} has {what} or is {within} of it: {lead}."]
    elif near or not race.standings:
        parts = [f"{leader} has {what} so far, {lead}, but the race is not decided."]
    else:
        parts = [f"{leader} has {what} so far, {lead}."]
    if race.outcome != "ties" and tied:
        are = "is" if len(tied) == 1 else "are"
        parts.append(f"{_listed(_with_ratio(tied))} {are} tied with it {within}.")
    if still_open:
        may = "may be as good or better" if race.outcome == "undecided" else "may be as good"
        parts.append(f"{_listed(_with_ratio(still_open))} {may}.")
    behind = [one for one in race.standings if one.relation == "behind"]
    if behind:
        parts.append(f"Behind: {_listed(_with_ratio(behind))}.")
    failed = [one.server for one in race.standings if one.relation == "failed"]
    if failed:
        names = words.join_words(failed)
        parts.append(f"{names} dropped out: requests failed, or the rate was not sustained.")
    return " ".join(parts)


def _with_ratio(standings: Sequence[RaceStanding]) -> list[str]:
    """``b (1.31× [1.18, 1.45])``; the last ones together."""
    shown = [
        one.server if one.factor is None else f"{one.server} ({_ratio_words(one)})"
        for one in standings[:MAX_SHOWN]
    ]
    rest = standings[MAX_SHOWN:]
    factors = [one.factor for one in rest if one.factor is not None]
    if rest:
        least = f" ({min(factors):.1f}× or more)" if factors else ""
        shown.append(f"{len(rest)} more{least}")
    return shown


def _ratio_words(standing: RaceStanding) -> str:
    factor, ends = standing.factor or 0.0, standing.interval_95
    known = ends is not None and ends[1] / ends[0] < UNKNOWN_FACTOR
    digits = f"{factor:.2f}×" if factor < LARGE_FACTOR else f"{factor:.1f}×"
    return f"{digits} [{ends[0]:.2f}, {ends[1]:.2f}]" if known and ends is not None else digits


def _listed(names: Sequence[str]) -> str:
    return words.join_words(list(names))


def objective_words(race: Race) -> str:
    """``Of 48 configurations, 20 missed the objective in the first block and 24 were neither leaner
    nor faster.``"""
    early = [drop for drop in race.dropped_out if drop.rounds == 1]
    missed = sum(drop.behind is None for drop in early)
    others = len(early) - missed
    parts = [f"{missed} missed the objective in the first block"] if missed else []
    if others:
        were = "was" if others == 1 else "were"
        parts.append(f"{others} {were} neither leaner nor faster than the others")
    count = len(race.contenders) + len(race.dropped_out)
    return f"Of {count} configurations, {' and '.join(parts)}." if parts else ""


def duration_needs(level: RankingLevel) -> str | None:
    """The duration of a trial with which servers can be compared; None if it was long enough."""
    ranked = [entry for entry in level.entries if entry.status == "ranked"]
    if not level.rate or not any(entry.few_requests_beyond for entry in ranked):
        return None
    needed = words.needed_requests(HEADLINE)
    return f"use --duration {enough_s(level.rate)}s, because p99 {needed} per trial"


def race_needs(race: Race, level: RankingLevel, summary: Summary) -> str:
    """The budget, or the duration of a trial, with which a decision is expected."""
    if race.outcome == "failed":
        return "use lower --rates; the reasons are listed below"
    if (needs := duration_needs(level)) is not None:
        return needs
    budget_s = summary.experiment.budget_s or 0.0
    launches = {(cell.run, cell.id.rpartition("@")[0]) for cell in summary.cells}
    if race.rounds_left is None or not launches:
        minutes = math.ceil(_TIMES_AS_LONG * budget_s / 60)
        return f"use --budget {minutes}m, because this budget is too short for a decision"
    # The whole budget was used, as the race is not decided.
    further_s = race.rounds_left * len(race.contenders) * budget_s / len(launches)
    minutes = math.ceil((budget_s + further_s) / 60)
    return f"measure about {further_s:.0f} s more (--budget {minutes}m)"
