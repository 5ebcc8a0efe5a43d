"""Which differences between servers, or between two stored runs, the data can carry. Pure, from
cells of summary.json.

Inside one experiment servers are compared round by round, because a round shares its arrivals and
its hour. Those that serve different apps are not compared: their difference is that of the apps.
Two stored runs share no rounds, so their samples are compared as they are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from wsgiload.analysis.aggregate import GOODPUT, Level, figure_of, server_of, standing
from wsgiload.analysis.overload import saturation_goodputs
from wsgiload.statistics.effect import (
    FEWEST_RUNS,
    SAME_WITHIN,
    SIGNIFICANT,
    Effect,
    holm,
    paired_effect,
    unpaired_effect,
)

Json = Mapping[str, Any]
Finding = Literal["different", "same", "undecided", "no inference"]

# Beyond this share of its capacity a server's quantiles magnify every drift of the host.
CAUTIOUS_SHARE = 0.8
_BOTH = 2
# Of the plan, what says nothing of how a server was measured.
_MAY_DIFFER = {"name", "servers", "runs", "rates", "connections", "aggregate"}
# Of the host, what its figures depend on first of all.
_OF_HOST = ("machine", "cpu_model", "cpus", "available_cpus", "kernel")
_ENDED = {
    "interrupted": "was interrupted, so that cells are missing from it",
    "failed": "has failed before its end",
}


@dataclass(frozen=True, slots=True)
class Pair:
    """Two samples of one figure at one load, by their names."""

    first: str
    second: str
    level: Level
    app: str | None
    effect: Effect | None
    rounds: int
    is_same_server: bool
    reason: str | None


@dataclass(frozen=True, slots=True)
class Change:
    """Two stored runs: where they are, what changed in each server, and what else was not alike."""

    runs: tuple[str, str]
    comparisons: list[dict[str, Any]]
    unlike: list[str]


def default_figure(cells: Sequence[Json]) -> str:
    """p99 where the load is given as a rate; goodput where a fixed number of users wait for their
    answers."""
    return "p99" if any(cell["rate"] is not None for cell in cells) else GOODPUT


def compare_servers(
    cells: Sequence[Json], figure: str | None = None, *, of_sessions: bool = False
) -> list[dict[str, Any]]:
    """``comparisons`` of summary.json: at every load every pair of servers that serve the same app,
    in the order in which the cells stand. A rate ``of_sessions`` is no share of a capacity, which
    is one of requests."""
    chosen = figure or default_figure(cells)
    found, saturation = standing(cells), {} if of_sessions else saturation_goodputs(cells)
    kinds, apps = _kinds(cells), _apps(cells)
    rivals: dict[tuple[object, ...], list[Level]] = {}
    for where in found:
        rivals.setdefault((where.rate, where.connections, apps[where.server]), []).append(where)
    entries: list[dict[str, Any]] = []
    for here in rivals.values():
        pairs = [
            _paired(
                (first, second),
                found,
                chosen,
                app=apps[first.server],
                same=kinds[first.server] == kinds[second.server],
            )
            for first, second in itertools.combinations(here, _BOTH)
        ]
        entries += _judged(pairs, chosen, saturation)
    return entries


def compare_runs(
    first: Sequence[Json],
    second: Sequence[Json],
    figure: str | None = None,
    *,
    of_sessions: bool = False,
) -> list[dict[str, Any]]:
    """Every server at every load that both runs measured: the second run's figure over the
    first's."""
    chosen = figure or default_figure(first)
    before, after = standing(first), standing(second)
    saturation = (
        {} if of_sessions else {**saturation_goodputs(first), **saturation_goodputs(second)}
    )
    entries: list[dict[str, Any]] = []
    for level in dict.fromkeys((level.rate, level.connections) for level in before):
        here = [
            where for where in before if (where.rate, where.connections) == level and where in after
        ]
        entries += _judged(
            [_unpaired(where, before, after, chosen) for where in here], chosen, saturation
        )
    return entries


def unlike(first: Json, second: Json) -> list[str]:
    """What else differs between two summaries, a sentence each: it may be what makes their figures
    differ."""
    before, now = first["experiment"], second["experiment"]
    remarks = [
        f"The {which} run {_ENDED[run['status']]}."
        for which, run in (("first", first), ("second", second))
        if run.get("status") in _ENDED
    ]
    remarks += [
        f"The runs were not made alike: {name.replace('_', ' ')} was {before.get(name)} and "
        f"then {now.get(name)}."
        for name in sorted({*before, *now} - _MAY_DIFFER)
        if before.get(name) != now.get(name)
    ]
    versions, versions_now = _versions(first["cells"]), _versions(second["cells"])
    for server in sorted(versions.keys() & versions_now.keys()):
        if versions[server] != versions_now[server]:
            remarks.append(f"{server} was {versions[server]} and then {versions_now[server]}.")
    return remarks


def unlike_hosts(first: Json | None, second: Json | None) -> list[str]:
    """One sentence where two runs were not made on the same host; none where a run does not tell of
    its own."""
    if first is None or second is None:
        return []
    changes = [
        f"{name.replace('_', ' ')} was {first.get(name)} and then {second.get(name)}"
        for name in _OF_HOST
        if first.get(name) != second.get(name)
    ]
    return (
        [f"Caution, the runs were not made on the same host: {', '.join(changes)}."]
        if changes
        else []
    )


def _versions(cells: Sequence[Json]) -> dict[str, str]:
    return {
        server_of(cell): f"{cell['version']} on Python {cell['python']}"
        for cell in cells
        if cell.get("version") is not None
    }


def _kinds(cells: Sequence[Json]) -> dict[str, tuple[object, ...]]:
    """What a server is, whatever its name: two names for the same are an A/A pair."""
    return {
        server_of(cell): tuple(cell.get(key) for key in ("server", "variant", "profile", "size"))
        for cell in cells
    }


def _apps(cells: Sequence[Json]) -> dict[str, str | None]:
    """What each server serves; None of a run that was stored before there was a choice."""
    return {server_of(cell): cell.get("app") for cell in cells}


def _paired(
    both: tuple[Level, Level],
    found: Mapping[Level, Mapping[int, Json]],
    figure: str,
    *,
    app: str | None,
    same: bool,
) -> Pair:
    first, second = both
    rounds = sorted(found[first].keys() & found[second].keys())
    one, other = (
        [figure_of(found[where][run], figure) for run in rounds] for where in (first, second)
    )
    reason = _why_not(one, other)
    effect = None
    if reason is None:
        logarithms = zip(_logarithms(one), _logarithms(other), strict=True)
        effect = paired_effect([left - right for left, right in logarithms])
    return Pair(first.server, second.server, first, app, effect, len(rounds), same, reason)


def _unpaired(
    where: Level,
    before: Mapping[Level, Mapping[int, Json]],
    after: Mapping[Level, Mapping[int, Json]],
    figure: str,
) -> Pair:
    one, other = (
        [figure_of(cell, figure) for cell in runs[where].values()] for runs in (after, before)
    )
    reason = _why_not(one, other)
    effect = unpaired_effect(_logarithms(one), _logarithms(other)) if reason is None else None
    apps = {cell.get("app") for runs in (after, before) for cell in runs[where].values()}
    app = apps.pop() if len(apps) == 1 else None
    return Pair(
        where.server, where.server, where, app, effect, min(len(one), len(other)), False, reason
    )


def _logarithms(values: Sequence[float | None]) -> list[float]:
    return [math.log(value) for value in values if value is not None]


def _why_not(one: Sequence[float | None], other: Sequence[float | None]) -> str | None:
    fewest = min(len(one), len(other))
    if fewest < FEWEST_RUNS:
        return f"no inference possible from {fewest} run{'' if fewest == 1 else 's'}"
    for values in (one, other):
        missed = sum(
            value is not None and not (math.isfinite(value) and value > 0) for value in values
        )
        if missed:
            return f"not met in {missed} of {len(values)} runs"
        if any(value is None for value in values):
            return "too few requests"
    return None


def _judged(
    pairs: Sequence[Pair], figure: str, saturation: Mapping[str, float]
) -> list[dict[str, Any]]:
    """The pairs of one app at one load, each with its p adjusted for the others."""
    known = [pair.effect for pair in pairs if pair.effect is not None]
    adjusted = iter(holm([effect.p for effect in known]))
    chance = [
        abs(pair.effect.interval.mean)
        for pair in pairs
        if pair.effect is not None and pair.is_same_server
    ]
    spread = max(chance, default=None)
    return [
        _entry(
            pair, figure, next(adjusted) if pair.effect is not None else None, spread, saturation
        )
        for pair in pairs
    ]


def _entry(
    pair: Pair,
    figure: str,
    p_adjusted: float | None,
    spread: float | None,
    saturation: Mapping[str, float],
) -> dict[str, Any]:
    effect = pair.effect
    needed = None if pair.is_same_server else spread
    return {
        "first": pair.first,
        "second": pair.second,
        "rate": pair.level.rate,
        "connections": pair.level.connections,
        "app": pair.app,
        "figure": figure,
        "rounds": pair.rounds,
        "same_server": pair.is_same_server,
        "factor": effect.factor if effect else None,
        "interval_95": list(effect.bounds) if effect else None,
        "p": effect.p if effect else None,
        "p_adjusted": p_adjusted,
        "aa_factor": math.exp(spread) if spread is not None else None,
        "finding": judge(effect, p_adjusted, needed),
        "reason": pair.reason,
        "load_share": _load_share(pair, saturation),
    }


def judge(effect: Effect | None, p_adjusted: float | None, aa_spread: float | None) -> Finding:
    """What may be said. A difference needs an interval without 1, an adjusted p below 0.05, and
    more than the same server showed against itself (``aa_spread``, a logarithm); what lies within 5
    % for sure is called the same.
    """
    if effect is None or p_adjusted is None:
        return "no inference"
    if effect.interval.lies_within(math.log1p(SAME_WITHIN)):
        return "same"
    exceeds_chance = abs(effect.interval.mean) > (aa_spread or 0.0)
    if effect.interval.excludes_zero() and p_adjusted < SIGNIFICANT and exceeds_chance:
        return "different"
    return "undecided"


def _load_share(pair: Pair, saturation: Mapping[str, float]) -> float | None:
    """The larger share of its capacity at which one of the two was; None unless both were driven
    into saturation."""
    if pair.level.rate is None or not {pair.first, pair.second} <= saturation.keys():
        return None
    return pair.level.rate / min(saturation[pair.first], saturation[pair.second])


def drift_factor(share: float) -> float:
    """By how much per cent p99 moves when the capacity moves by one: rho / (1 - rho), of an M/M/1
    queue."""
    return math.inf if share >= 1 else share / (1 - share)
