"""Which of many settings qualify for a race, from a few rounds of short trials. Pure.

Successive halving (K. Jamieson and A. Talwalkar, "Non-stochastic best arm identification and
hyperparameter optimization", AISTATS 2016): each round keeps at most the better half, so that most
trials are spent on good settings. It is a selection and no finding: the race that follows counts
its own rounds only, which these cannot have flattered.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from wsgiload.statistics.race import FINALISTS, Drop
from wsgiload.statistics.sequential import Round, is_known

# A short trial is off by less: at the usual spread, one in a hundred by a factor of two.
FAR_BEHIND = 2.0


@dataclass(frozen=True, slots=True)
class Qualified:
    """Who is left, the fastest first, and who dropped out."""

    contenders: tuple[str, ...]
    drops: tuple[Drop, ...]


def qualify(servers: Sequence[str], rounds: Sequence[Round], field: int) -> Qualified:
    """Replayed round by round, so that no drop is ever taken back; a setting of which nothing is
    known stays."""
    contenders, drops = list(servers), list[Drop]()
    for number in range(1, len(rounds) + 1):
        seen = rounds[:number]
        failed = [name for name in contenders if math.isinf(seen[-1].get(name, 0.0))]
        drops += [Drop(name, number, None, None, True) for name in failed]
        contenders = _fastest_first([name for name in contenders if name not in failed], seen)
        most = max(field, math.ceil(len(servers) / 2**number))
        drops += _behind(contenders, seen, most)
        gone = {drop.server for drop in drops}
        contenders = [name for name in contenders if name not in gone]
    return Qualified(tuple(contenders), tuple(drops))


def _behind(order: Sequence[str], seen: Sequence[Round], most: int) -> list[Drop]:
    """Beyond the number that is kept, or far behind the fastest, which keeps its next rival."""
    standings = _standings(order, seen)
    known = [name for name in order if name in standings]
    unknown = len(order) - len(known)
    drops = []
    for place, name in enumerate(known):
        behind = standings[name] - standings[known[0]]
        is_surplus = place + unknown >= max(most, FINALISTS)
        if place >= FINALISTS and (is_surplus or behind > math.log(FAR_BEHIND)):
            drops.append(Drop(name, len(seen), known[0], math.exp(behind), True))
    return drops


def _fastest_first(names: Sequence[str], seen: Sequence[Round]) -> list[str]:
    """Those of which nothing is known last."""
    standings = _standings(names, seen)
    return sorted(names, key=lambda name: standings.get(name, math.inf))


def _standings(names: Sequence[str], seen: Sequence[Round]) -> dict[str, float]:
    """The mean distance to the median of those that are left, over the rounds of each."""
    distances: dict[str, list[float]] = {}
    for values in seen:
        known = [name for name in names if is_known(values, name)]
        middle = median(values[name] for name in known) if known else 0.0
        for name in known:
            distances.setdefault(name, []).append(values[name] - middle)
    return {name: fmean(values) for name, values in distances.items()}
