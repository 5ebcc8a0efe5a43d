"""``--slo`` without ``--rates``: an initial closed loop per configuration determines the rates."""

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

# The maximum share of a budget for the closed loops; the rest is for the race.
MAX_SHARE = 0.5
WARMUP_S = 0.5


def require_possible_rates(experiment: Experiment) -> None:
    """Raise UsageError if the rates cannot be determined, before anything is started."""
    if len(apps_of(experiment.sizes)) > 1:
        raise UsageError("--slo with several apps requires --rates")
    require_closed_loop(experiment)
    if experiment.budget_ns is None:
        return
    closed_loops_s = _closed_loops_s(experiment)
    if closed_loops_s > MAX_SHARE * experiment.budget_ns / NS_PER_S:
        count = len(resolve_servers(experiment))
        minutes = math.ceil(closed_loops_s / MAX_SHARE / 60)
        raise UsageError(
            f"--budget is too short to find rates for {plural(count, 'configuration')}",
            f"use --rates, or --budget {minutes}m",
        )


def with_initial_rates(experiment: Experiment, log: Callable[[str], None]) -> Experiment:
    """Run the closed loops, and return the experiment with the rates that follow from them."""
    named = replace(experiment, name=f"{experiment.name}-rates")
    if experiment.budget_ns is None:
        return replace(experiment, levels=find_levels(named, log))
    short = replace(experiment.load, warmup=min(experiment.load.warmup, WARMUP_S), cooldown=0.0)
    initial = replace(named, load=short, budget_ns=None, qualifying=None)
    with_levels = replace(experiment, levels=find_levels(initial, log, CLOSED_LOOP_NS_IN_RACE))
    # The closed loops have used a part of the budget.
    left_ns = experiment.budget_ns - round(_closed_loops_s(experiment) * NS_PER_S)
    return replace(raced(replace(with_levels, budget_ns=left_ns)), budget_ns=experiment.budget_ns)


def closed_loops_line(experiment: Experiment) -> str:
    """A sentence on the closed loops and their share of the budget."""
    return (
        f"a closed loop of {CLOSED_LOOP_NS_IN_RACE / NS_PER_S:g} s per configuration determines "
        f"the rates first (about {format_span(_closed_loops_s(experiment))} of the budget)"
    )


def _closed_loops_s(experiment: Experiment) -> float:
    seconds = CLOSED_LOOP_NS_IN_RACE / NS_PER_S + WARMUP_S + USUAL_OVERHEAD_S
    return len(resolve_servers(experiment)) * seconds
