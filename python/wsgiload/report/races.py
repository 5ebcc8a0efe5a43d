"""The outcome of a race in sentences. Pure, from a summary."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from wsgiload.documents.answer import RankingLevel
from wsgiload.documents.experiment_facts import ExperimentFacts
from wsgiload.documents.over_cells import Race, RaceDropout
from wsgiload.report import words
from wsgiload.report.cells import HEADLINE
from wsgiload.report.ranked_figures import enough_s

STATUSES: dict[str, Literal["decided", "tie", "undecided"]] = {
    "winner": "decided",
    "ties": "tie",
    "undecided": "undecided",
    "failed": "undecided",
}
MAX_DROPS = 3
# Launch, probes and stop of a server, and the shortest wait for a quiet host.
_AROUND_A_TRIAL_S = 7.0
NOBODY = "Every server failed at this load level: too many requests got no correct response."
# Suggested budget factor if the remaining rounds are unknown.
_TIMES_AS_LONG = 2


def tie_words(names: Sequence[str], margin: float | None, aim: str, lead: str) -> str:
    """``a and b are tied within 21 % for the lowest p99 at 400/s: a has 5.1 ms.``"""
    within = "" if margin is None else f" within {100 * margin:.0f} %"
    return f"{words.join_words(names)} are tied{within} for {aim}: {names[0]} has {lead}."


def open_words(names: Sequence[str], untested: Sequence[str], aim: str, lead: str) -> str:
    """``a has the lowest p99 at 400/s so far, 5.1 ms, but b is not significantly worse, and c was
    not tested.``"""
    leader, *others = names
    if not others:
        return f"{leader} is the only remaining server that sustained this load level ({lead})."
    tested = [name for name in others if name not in untested]
    parts = []
    if tested:
        are = "is" if len(tested) == 1 else "are"
        parts.append(f"{words.join_words(tested)} {are} not significantly worse")
    if untested:
        were = "was" if len(untested) == 1 else "were"
        parts.append(f"{words.join_words(untested)} {were} not tested against it")
    return f"{leader} has {aim} so far, {lead}, but {', and '.join(parts)}."


def dropped_words(dropped: Sequence[RaceDropout]) -> str:
    """``Dropped out: c (behind a by a factor of 2.31 after 2 rounds).``; empty if no server did."""
    if not dropped:
        return ""
    late = [drop for drop in dropped if not drop.in_qualifying]
    early = len(dropped) - len(late)
    shown = [f"{drop.server} ({_why(drop)})" for drop in late[:MAX_DROPS]]
    more = len(late) - len(shown)
    shown += [f"{more} more"] if more else []
    shown += [f"{words.plural(early, 'configuration')} after short trials"] if early else []
    return f"Dropped out: {words.join_words(shown)}."


def objective_words(race: Race) -> str:
    """``Of 48 configurations, 20 missed the objective in a short trial and 24 were neither leaner
    nor faster.``"""
    early = [drop for drop in race.dropped_out if drop.in_qualifying]
    missed = sum(drop.behind is None for drop in early)
    others = len(early) - missed
    parts = [f"{missed} missed the objective in a short trial"] if missed else []
    if others:
        were = "was" if others == 1 else "were"
        parts.append(f"{others} {were} neither leaner nor faster than the others")
    count = len(race.contenders) + len(race.dropped_out)
    return f"Of {count} configurations, {' and '.join(parts)}." if parts else ""


def _why(drop: RaceDropout) -> str:
    if drop.factor is None:
        return "failed twice"
    rounds = words.plural(drop.rounds, "round")
    return f"behind {drop.behind} by a factor of {drop.factor:.2f} after {rounds}"


def duration_needs(level: RankingLevel) -> str | None:
    """The duration of a trial with which servers can be compared; None if it was long enough."""
    ranked = [entry for entry in level.entries if entry.status == "ranked"]
    if not level.rate or not any(entry.few_requests_beyond for entry in ranked):
        return None
    needed = words.needed_requests(HEADLINE)
    return f"use --duration {enough_s(level.rate)}s, because p99 {needed} per trial"


def race_needs(race: Race, level: RankingLevel, experiment: ExperimentFacts) -> str:
    """The budget, or the duration of a trial, with which a decision is expected."""
    if race.outcome == "failed":
        return "use lower --rates; the reasons are listed below"
    if (needs := duration_needs(level)) is not None:
        return needs
    budget_s = experiment.budget_s or 0.0
    if race.rounds_left is None:
        minutes = math.ceil(_TIMES_AS_LONG * budget_s / 60)
        return f"use --budget {minutes}m, because this budget is too short for a decision"
    load_s = experiment.warmup_s + experiment.duration_s + (experiment.cooldown_s or 0.0)
    further_s = race.rounds_left * len(race.contenders) * (load_s + _AROUND_A_TRIAL_S)
    minutes = math.ceil((budget_s + further_s) / 60)
    return f"run about {words.plural(race.rounds_left, 'more round')} (--budget {minutes}m)"
