"""The outcome of a race in sentences. Pure, from a summary."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from wsgiload.documents.answer import RankingLevel
from wsgiload.documents.over_cells import Race, RaceStanding
from wsgiload.documents.summary import Summary
from wsgiload.report import words
from wsgiload.report.cells import HEADLINE
from wsgiload.report.ranked_figures import enough_s

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
