"""The qualifying rounds of a race: short trials that select the configurations that race. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from wsgiload.loads.options import Level, LoadSettings
from wsgiload.units import NS_PER_S

# Up to this many configurations race without qualifying, which would take about two rounds.
MAX_UNQUALIFIED = 8
# How many configurations qualify. With an objective, fewer suffice: they only have to meet it.
FIELD, FIELD_WITH_OBJECTIVE = 6, 4
DURATION_NS, WARMUP_S, COOLDOWN_S = 3 * NS_PER_S, 1.0, 0.5
# Requests per trial, so that five are slower than p99.
REQUESTS = 500


@dataclass(frozen=True, slots=True)
class Qualifying:
    """Rounds of short trials. Each round eliminates at most half of the configurations; ``field``
    of them qualify."""

    rounds: int
    field: int
    load: LoadSettings


def qualifying_of(
    settings: int, load: LoadSettings, levels: Sequence[Level], *, has_objective: bool
) -> Qualifying | None:
    """The qualifying rounds for ``settings`` competing configurations; None if there are few and
    there is no objective."""
    short = _short(load, levels)
    if has_objective:
        return Qualifying(1, FIELD_WITH_OBJECTIVE, short)
    if settings <= MAX_UNQUALIFIED:
        return None
    return Qualifying(math.ceil(math.log2(settings / FIELD)), FIELD, short)


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


def trials_of(qualifying: Qualifying, settings: int) -> int:
    """The maximum number of short trials for ``settings`` configurations at one load level."""
    trials = settings
    for number in range(1, qualifying.rounds):
        trials += max(qualifying.field, math.ceil(settings / float(2**number)))
    return trials
