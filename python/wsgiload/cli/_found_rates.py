"""``--slo`` without ``--rates``: the rates follow from a closed loop of each setting."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from wsgiload.capacity_search.rates import CLOSED_LOOP_NS_IN_RACE, find_levels
from wsgiload.capacity_search.trials import require_closed_loop
from wsgiload.errors import UsageError
from wsgiload.experiment.estimate import USUAL_OVERHEAD_S
from wsgiload.experiment.grid import apps_of
from wsgiload.experiment.plan import Experiment
from wsgiload.experiment.settings import raced, resolve_servers
from wsgiload.report.words import format_span, plural
from wsgiload.units import NS_PER_S

# Of a budget; the rest is for the race.
MOST_SHARE = 0.5
WARMUP_NS = NS_PER_S // 2


def require_findable_rates(experiment: Experiment) -> None:
    """Refuse what no rates can be found for, before anything is started."""
    if len(apps_of(experiment.sizes)) > 1:
        raise UsageError("--slo with several apps requires --rates")
    require_closed_loop(experiment)
    if experiment.budget_ns is None:
        return
    time_s = _look_s(experiment)
    if time_s > MOST_SHARE * experiment.budget_ns / NS_PER_S:
        count, minutes = len(resolve_servers(experiment)), math.ceil(time_s / MOST_SHARE / 60)
        raise UsageError(
            f"--budget is too short to find rates for {plural(count, 'configuration')}",
            f"use --rates, or --budget {minutes}m",
        )


def with_found_rates(experiment: Experiment, log: Callable[[str], None]) -> Experiment:
    """The experiment at the rates that were found."""
    named = replace(experiment, name=f"{experiment.name}-rates")
    if experiment.budget_ns is None:
        return replace(experiment, levels=find_levels(named, log))
    short = replace(
        experiment.load, warmup_ns=min(experiment.load.warmup_ns, WARMUP_NS), cooldown_ns=0
    )
    look = replace(named, load=short, budget_ns=None, qualifying=None)
    found = replace(experiment, levels=find_levels(look, log, CLOSED_LOOP_NS_IN_RACE))
    # What it took is not there for the race.
    left_ns = experiment.budget_ns - round(_look_s(experiment) * NS_PER_S)
    return replace(raced(replace(found, budget_ns=left_ns)), budget_ns=experiment.budget_ns)


def look_line(experiment: Experiment) -> str:
    """How rates are found within a budget, and how long that takes."""
    return (
        f"a closed loop of {CLOSED_LOOP_NS_IN_RACE / NS_PER_S:g} s per configuration determines "
        f"the rates first (about {format_span(_look_s(experiment))} of the budget)"
    )


def _look_s(experiment: Experiment) -> float:
    seconds = (CLOSED_LOOP_NS_IN_RACE + WARMUP_NS) / NS_PER_S + USUAL_OVERHEAD_S
    return len(resolve_servers(experiment)) * seconds
