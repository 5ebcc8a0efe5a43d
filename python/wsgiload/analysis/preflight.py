"""What an experiment can conclude, computed before it begins. Pure.

Based on its rates, durations and runs, and on the assumed spread of p99 between paired rounds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from wsgiload.catalogue.names import ServerVariant
from wsgiload.experiment.estimate import runs_s
from wsgiload.experiment.plan import (
    AROUND_A_LAUNCH_S,
    Experiment,
    experiment_facts,
    levels_down,
    planned_blocks,
)
from wsgiload.experiment.settings import max_pairs
from wsgiload.procedures.race import FIELD, FULL_BLOCKS
from wsgiload.statistics.effect import (
    MIN_RUNS,
    PLANNED_DEVIATION,
    SIGNIFICANT,
    runs_needed,
    t_quantile,
)
from wsgiload.units import NS_PER_S

# Ten of them lie beyond p99, the minimum for publishing it.
REQUESTS_FOR_P99 = 1_000
# Poisson arrivals fall short of their expected number by more than this in 1 of 740 loads.
_STANDARD_ERRORS = 3
_TOLERANCE = 1e-9
# Of the logarithm of p99 between launches of most servers on a quiet host, with a short slice; and
# the standard errors of a lead that a race finds in half of the cases.
TYPICAL_SPREAD, TYPICAL_Z = 0.12, 3.0


@dataclass(frozen=True, slots=True)
class Preflight:
    """The differences that the plan can detect, and the duration and runs that it lacks."""

    # The expected requests at the lowest rate, and the duration that p99 requires there; None if
    # the plan suffices or the number of requests is unknown.
    expected_requests: int | None
    needed_duration_s: int | None
    servers: int
    runs: int
    # The ratio of p99 that is detected with a probability of one half; None if there is none.
    factor: float | None
    # The number of runs, and their time, that detects a ratio of 1.3; None if the plan suffices.
    needed_runs: int | None
    needed_s: float | None
    # Whether it is a race; ``runs`` is then the number that the budget allows if no server drops
    # out.
    is_race: bool = False
    # Of a race without an objective.
    margin: float | None = None
    budget_s: float = 0.0


def preflight(experiment: Experiment, variants: Mapping[str, ServerVariant]) -> Preflight:
    """The preflight of a plan with these servers."""
    expected, needed_duration_s = _requests(experiment)
    pairs, runs = max_pairs(variants), experiment.runs
    if experiment.is_race:
        of_race = _of_objective if experiment.slo else _of_race
        return of_race(experiment, variants, (expected, needed_duration_s))

    # The usual spread of closed-loop goodput is unknown.
    is_open = any(level.rate_per_s is not None for level in experiment.levels)
    factor = detectable_factor(runs, pairs) if pairs and is_open else None

    needed = runs_needed(pairs)
    is_short = pairs > 0 and runs < (needed if is_open else MIN_RUNS)
    return Preflight(
        expected_requests=expected,
        needed_duration_s=needed_duration_s,
        servers=len(variants) if pairs else 1,
        runs=runs,
        factor=factor,
        needed_runs=needed if is_short else None,
        needed_s=_time_s(experiment, tuple(variants), needed) if is_short else None,
    )


def _of_race(
    experiment: Experiment,
    variants: Mapping[str, ServerVariant],
    requests: tuple[int | None, int | None],
) -> Preflight:
    """The preflight of blocks that measure every level first, then only the highest."""
    budget_s, levels = experiment.race_s, levels_down(experiment)
    load_s = sum(experiment.load_of(one).load_ns_at(one) for one in levels) / NS_PER_S
    full_s = len(variants) * (load_s + AROUND_A_LAUNCH_S)
    short_s = budget_s / planned_blocks(experiment, 1)
    left_s = budget_s - FULL_BLOCKS * full_s
    # All but half of the servers usually drop out in the first blocks.
    blocks = FULL_BLOCKS + int(left_s / short_s / math.ceil(len(variants) / 2))
    is_short = left_s < 0
    return Preflight(
        *requests,
        servers=len(variants),
        runs=max(1, blocks) if not is_short else int(budget_s / full_s),
        factor=None if is_short else math.exp(TYPICAL_Z * TYPICAL_SPREAD * math.sqrt(2 / blocks)),
        needed_runs=MIN_RUNS if is_short else None,
        needed_s=MIN_RUNS * full_s if is_short else None,
        is_race=True,
        margin=experiment.margin,
        budget_s=budget_s,
    )


def _of_objective(
    experiment: Experiment,
    variants: Mapping[str, ServerVariant],
    requests: tuple[int | None, int | None],
) -> Preflight:
    """The preflight of a race that measures all configurations in the first block, and a few in the
    others; one level must fit."""
    longest_ns = max(experiment.load_of(one).load_ns_at(one) for one in experiment.levels)
    launch_s = longest_ns / NS_PER_S + AROUND_A_LAUNCH_S
    field = min(FIELD, len(variants))
    needed_s = (len(variants) + MIN_RUNS * field) * launch_s
    is_short = needed_s > experiment.race_s
    return Preflight(
        *requests,
        servers=len(variants),
        runs=int(experiment.race_s / launch_s / len(variants)),
        factor=None,
        needed_runs=1 + MIN_RUNS if is_short else None,
        needed_s=needed_s if is_short else None,
        is_race=True,
        budget_s=experiment.race_s,
    )


def detectable_factor(runs: int, pairs: int, deviation: float = PLANNED_DEVIATION) -> float | None:
    """The factor at which the expected t value reaches the critical value after Bonferroni's
    adjustment, for this standard deviation of the logarithm between paired rounds."""
    if runs < MIN_RUNS:
        return None
    critical = t_quantile(1 - SIGNIFICANT / max(1, pairs) / 2, runs - 1)
    return math.exp(critical * deviation / math.sqrt(runs))


def _requests(experiment: Experiment) -> tuple[int | None, int | None]:
    """The expected requests at the lowest rate, and the duration that gives enough; None if the
    plan suffices."""
    rates = [level.rate_per_s for level in experiment.levels if level.rate_per_s is not None]
    if not rates or experiment.request.sessions:
        return None, None
    load = experiment.load
    needed = float(REQUESTS_FOR_P99)
    if load.arrivals == "poisson":
        # The number n with n - 3 sqrt(n) = 1,000.
        half = _STANDARD_ERRORS / 2
        needed = (half + math.sqrt(half**2 + REQUESTS_FOR_P99)) ** 2

    lowest = min(rates)
    if experiment.is_sliced:
        return None, None
    expected = lowest * load.duration_ns / NS_PER_S
    if expected >= needed - _TOLERANCE:
        return None, None
    return round(expected), math.ceil(needed / lowest - _TOLERANCE)


def _time_s(experiment: Experiment, servers: tuple[str, ...], runs: int) -> float:
    return runs_s(experiment_facts(experiment, servers), len(servers), runs)
