"""Selects the configurations that qualify for a race, from a few rounds of short trials. Pure.

Successive halving (K. Jamieson and A. Talwalkar, "Non-stochastic best arm identification and
hyperparameter optimization", AISTATS 2016): each round keeps at most the better half, so most
trials are spent on good configurations. This is only a selection. The race that follows counts only
its own rounds, so the selection cannot bias it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from wsgiload.statistics.race import FINALISTS, Drop
from wsgiload.statistics.sequential import Round, is_known

# With the usual spread, only 1 short trial in 100 is off by a factor of two.
FAR_BEHIND = 2.0


@dataclass(frozen=True, slots=True)
class Qualified:
    """The remaining contenders, the fastest first, and those that dropped out."""

    contenders: tuple[str, ...]
    drops: tuple[Drop, ...]


def qualify(servers: Sequence[str], rounds: Sequence[Round], field: int) -> Qualified:
    """Replays all rounds, so no drop is ever reversed. A configuration without results stays."""
    contenders, drops = list(servers), list[Drop]()
    for number in range(1, len(rounds) + 1):
        so_far = rounds[:number]
        failed = [name for name in contenders if math.isinf(so_far[-1].get(name, 0.0))]
        drops += [Drop(name, number, None, None, True) for name in failed]
        contenders = _fastest_first([name for name in contenders if name not in failed], so_far)
        most = max(field, math.ceil(len(servers) / 2**number))
        drops += _behind(contenders, so_far, most)
        dropped = {drop.server for drop in drops}
        contenders = [name for name in contenders if name not in dropped]
    return Qualified(tuple(contenders), tuple(drops))


def _behind(order: Sequence[str], so_far: Sequence[Round], most: int) -> list[Drop]:
    """The configurations that exceed the number to keep or are far behind the fastest. The fastest
    always keeps its next rival."""
    standings = _standings(order, so_far)
    known = [name for name in order if name in standings]
    unknown = len(order) - len(known)
    drops = []
    for place, name in enumerate(known):
        behind = standings[name] - standings[known[0]]
        is_surplus = place + unknown >= max(most, FINALISTS)
        if place >= FINALISTS and (is_surplus or behind > math.log(FAR_BEHIND)):
            drops.append(Drop(name, len(so_far), known[0], math.exp(behind), True))
    return drops


def _fastest_first(names: Sequence[str], so_far: Sequence[Round]) -> list[str]:
    """Names without results come last."""
    standings = _standings(names, so_far)
    return sorted(names, key=lambda name: standings.get(name, math.inf))


def _standings(names: Sequence[str], so_far: Sequence[Round]) -> dict[str, float]:
    """The mean distance from the median of the remaining contenders, over the rounds of each."""
    distances: dict[str, list[float]] = {}
    for values in so_far:
        known = [name for name in names if is_known(values, name)]
        middle = median(values[name] for name in known) if known else 0.0
        for name in known:
            distances.setdefault(name, []).append(values[name] - middle)
    return {name: fmean(values) for name, values in distances.items()}
