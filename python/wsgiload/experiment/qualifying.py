"""The short trials of a race: those that select the configurations that may meet an objective, and
the slices of a race without one. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from wsgiload.loads.options import Level, LoadSettings
from wsgiload.units import NS_PER_S

# How many configurations qualify. Few suffice, because they only have to meet the objective.
FIELD = 4
DURATION_NS, WARMUP_S, COOLDOWN_S = 3 * NS_PER_S, 1.0, 0.5
# Requests per trial, so that five are slower than p99.
REQUESTS = 500
# p99 needs 1,000 requests; 99.9 % of Poisson loads with this mean have them.
SLICE_REQUESTS = 1_100


@dataclass(frozen=True, slots=True)
class Qualifying:
    """Rounds of short trials, in which ``field`` configurations qualify."""

    rounds: int
    field: int
    load: LoadSettings


def slice_ns(level: Level) -> int:
    """The shortest measurement that gives p99 in nearly every load, and at least one second."""
    rate = level.rate_per_s
    return NS_PER_S if rate is None else max(NS_PER_S, math.ceil(SLICE_REQUESTS / rate * NS_PER_S))


def qualifying_of(load: LoadSettings, levels: Sequence[Level]) -> Qualifying:
    """The qualifying round of a race with an objective."""
    return Qualifying(1, FIELD, _short(load, levels))


def _short(load: LoadSettings, levels: Sequence[Level]) -> LoadSettings:
    """The load of the short trials, which are never longer than the trials of the race."""
    rates = [level.rate_per_s for level in levels if level.rate_per_s is not None]
    enough_ns = math.ceil(REQUESTS / min(rates) * NS_PER_S) if rates else 0
    return replace(
        load,
        duration_ns=min(load.duration_ns, max(DURATION_NS, enough_ns)),
        warmup=min(load.warmup, WARMUP_S),
        cooldown=min(load.cooldown, COOLDOWN_S),
        warmup_requests=None,
    )
