"""The first stage of a race with many settings: short trials, after which a field is left. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from wsgiload.loads.options import Level, LoadSettings
from wsgiload.units import NS_PER_S

# So many race without qualifying: two rounds of them cost about as much.
MOST_UNQUALIFIED = 8
# Who is left then. With an objective they only have to meet it, which takes fewer.
FIELD, FIELD_WITH_OBJECTIVE = 6, 4
DURATION_NS, WARMUP_NS, COOLDOWN_NS = 3 * NS_PER_S, NS_PER_S, NS_PER_S // 2
# Of one trial, so that five lie beyond p99.
REQUESTS = 500


@dataclass(frozen=True, slots=True)
class Qualifying:
    """Rounds of short trials, of which each at most halves the settings, and the field at their
    end."""

    rounds: int
    field: int
    load: LoadSettings


def qualifying_of(
    settings: int, load: LoadSettings, levels: Sequence[Level], *, has_objective: bool
) -> Qualifying | None:
    """Of so many settings that compete with each other; None for few ones without an objective."""
    short = _short(load, levels)
    if has_objective:
        return Qualifying(1, FIELD_WITH_OBJECTIVE, short)
    if settings <= MOST_UNQUALIFIED:
        return None
    return Qualifying(math.ceil(math.log2(settings / FIELD)), FIELD, short)


def _short(load: LoadSettings, levels: Sequence[Level]) -> LoadSettings:
    """Never longer than the trials of the race."""
    rates = [level.rate_per_s for level in levels if level.rate_per_s is not None]
    enough_ns = math.ceil(REQUESTS / min(rates) * NS_PER_S) if rates else 0
    return replace(
        load,
        duration_ns=min(load.duration_ns, max(DURATION_NS, enough_ns)),
        warmup_ns=min(load.warmup_ns, WARMUP_NS),
        cooldown_ns=min(load.cooldown_ns, COOLDOWN_NS),
        warmup_requests=None,
    )


def trials_of(qualifying: Qualifying, settings: int) -> int:
    """The most short trials of so many settings at one load."""
    trials = settings
    for number in range(1, qualifying.rounds):
        trials += max(qualifying.field, math.ceil(settings / float(2**number)))
    return trials
