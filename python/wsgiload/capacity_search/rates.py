"""Chooses the rates of a sweep without ``--rates``, from the throughput of each configuration in a
short closed loop.

A closed loop without think time shows the maximum throughput but not the latency at any rate, so
its result is only a starting point. Its trials have a separate run directory.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from wsgiload.capacity_search.trials import (
    ServerTrials,
    TrialPlan,
    require_closed_loop,
    server_trials,
)
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.run_info import HostFacts, InitialClosedLoop, RunInfo
from wsgiload.errors import LoadError, ServerError, UsageError, WsgiloadError
from wsgiload.experiment.estimate import USUAL_OVERHEAD_S
from wsgiload.experiment.plan import Experiment
from wsgiload.experiment.settings import raced, resolve_servers
from wsgiload.experiment.slices import SLICE_REQUESTS, slice_ns
from wsgiload.host.facts import host_facts
from wsgiload.loads.options import Level
from wsgiload.procedures.capacity import rounded
from wsgiload.procedures.race import FULL_BLOCKS
from wsgiload.report.words import format_measured_per_s, format_per_s, format_span, plural
from wsgiload.results.stored_plan import raw_plan
from wsgiload.units import NS_PER_S

# With an objective: from a rate that most configurations sustain to one at which few still respond
# in time.
SHARES = (0.3, 0.5, 0.7, 0.85, 0.95)
# Otherwise: of the fastest, which saturates those that are much slower; then of the slowest, which
# all carry.
SHARE_OF_FASTEST, SHARE_OF_SLOWEST = 0.7, 0.5
CLOSED_LOOP_NS, WARMUP_S = 2 * NS_PER_S, 0.5
# The maximum share of a budget for the closed loops, and for the slices at the lower rate.
MAX_SHARE, MAX_SHARE_OF_LOWER = 0.5, 0.25


def require_rates(experiment: Experiment) -> None:
    """Raise UsageError if an objective is combined with a closed loop, which has no rate."""
    if experiment.slo and any(level.rate_per_s is None for level in experiment.levels):
        raise UsageError(
            "--slo and --connections are mutually exclusive: an objective applies to a rate, and a "
            "closed loop has none",
            "use --rates, or omit both to let wsgiload choose the rates",
        )


def require_possible_rates(experiment: Experiment) -> None:
    """Raise UsageError if the rates cannot be determined, before anything is started."""
    require_closed_loop(experiment)
    _require_within_share(experiment, _closed_loops_s(experiment), _closed_loops_s(experiment))


def _require_within_share(experiment: Experiment, took_s: float, closed_loops_s: float) -> None:
    """Raise UsageError if closed loops take more than their share of the budget; all take
    ``closed_loops_s``."""
    if experiment.budget_ns is not None and took_s > MAX_SHARE * experiment.budget_ns / NS_PER_S:
        count = len(resolve_servers(experiment))
        minutes = math.ceil(closed_loops_s / MAX_SHARE / 60)
        raise UsageError(
            f"the budget is too short to find rates for {plural(count, 'configuration')}",
            f"use --rates, or --budget {minutes}m",
        )


def closed_loops_line(experiment: Experiment) -> str:
    """A sentence on the closed loops and their time."""
    of_budget = "" if experiment.budget_ns is None else " of the budget"
    return (
        f"A closed loop of {CLOSED_LOOP_NS / NS_PER_S:g} s per configuration determines the rates "
        f"first (about {format_span(_closed_loops_s(experiment))}{of_budget})."
    )


def unknown_levels(experiment: Experiment) -> tuple[Level, ...]:
    """As many levels as the closed loops may determine."""
    shares = SHARES if experiment.slo else (SHARE_OF_SLOWEST, SHARE_OF_FASTEST)
    return tuple(Level(rate_per_s=1000 * share) for share in shares)


def _closed_loops_s(experiment: Experiment) -> float:
    seconds = CLOSED_LOOP_NS / NS_PER_S + WARMUP_S + USUAL_OVERHEAD_S
    return len(resolve_servers(experiment)) * seconds


def with_found_rates(experiment: Experiment, log: Callable[[str], None]) -> Experiment:
    """Run the closed loops, and return the experiment with the rates that follow from them. Raises
    the first failure if no configuration gave a correct response."""
    log(closed_loops_line(experiment))
    host = host_facts()  # before the first load, which would change them
    load = experiment.load
    initial = replace(
        experiment,
        name=f"{experiment.name}-rates",
        load=replace(load, warmup=min(load.warmup, WARMUP_S), cooldown=0.0),
        budget_ns=None,
        is_sliced=False,
    )
    with server_trials(initial, log) as (trials, users):
        began_ns = time.monotonic_ns()
        for done, (server, count) in enumerate(users.items()):
            took_s = (time.monotonic_ns() - began_ns) / NS_PER_S
            _require_within_share(experiment, took_s, took_s * len(users) / max(1, done))
            cell = trials.carry_out(TrialPlan(server, Level(connections=count), 1, CLOSED_LOOP_NS))
            reached = format_measured_per_s(_goodput_per_s(cell))
            log(f"[closed loop] {server} … {'failed' if cell.failure is not None else reached}")
        took_ns = time.monotonic_ns() - began_ns
        trials.write_summary("complete")
        trials.directory.write_run(_run_of(initial, trials, host))

    levels = _levels_of(trials.cells, experiment)
    log(f"rates: {', '.join(format_per_s(level.rate_per_s) for level in levels)}")
    if experiment.budget_ns is None:
        return replace(experiment, levels=levels)
    if experiment.is_sliced:
        longest_ns = max(slice_ns(level, experiment.slo) for level in levels)
        load = replace(load, duration_ns=longest_ns)
    return raced(replace(experiment, levels=levels, load=load, closed_loops_ns=took_ns))


def _levels_of(cells: Sequence[CellResult], experiment: Experiment) -> tuple[Level, ...]:
    """The load levels of an open loop, lowest first."""
    by_app: dict[str | None, list[float]] = {}
    for cell in cells:
        if goodput_per_s := _goodput_per_s(cell):
            by_app.setdefault(cell.app, []).append(goodput_per_s)
    if not by_app:
        raise _without_response(cells)
    if experiment.slo:
        rates = [share * _fastest_per_s(by_app) for share in SHARES]
    else:
        rates = rates_of(by_app, _least_per_s(experiment))
    return tuple(Level(rate_per_s=rounded(rate, digits=2)) for rate in rates)


def rates_of(by_app: Mapping[str | None, Sequence[float]], least_per_s: float) -> list[float]:
    """A rate that the fastest configuration carries easily; before it, if the slowest does not
    carry that one, a rate that all carry, but at least ``least_per_s``."""
    high = SHARE_OF_FASTEST * _fastest_per_s(by_app)
    slowest = min(min(goodputs_per_s) for goodputs_per_s in by_app.values())
    low = max(SHARE_OF_SLOWEST * slowest, least_per_s)
    return [low, high] if slowest < high and 2 * low <= high else [high]


def _fastest_per_s(by_app: Mapping[str | None, Sequence[float]]) -> float:
    """The highest throughput that some configuration of every app reaches."""
    return min(max(goodputs_per_s) for goodputs_per_s in by_app.values())


def _least_per_s(experiment: Experiment) -> float:
    """The rate at which p99 takes all that the lower rate may use of a race, or of a trial."""
    if not experiment.is_sliced:
        return SLICE_REQUESTS / (experiment.load.duration_ns / NS_PER_S)
    slices = FULL_BLOCKS * len(resolve_servers(experiment))
    return slices * SLICE_REQUESTS / (MAX_SHARE_OF_LOWER * experiment.race_s)


def _run_of(experiment: Experiment, trials: ServerTrials, host: HostFacts) -> RunInfo:
    closed_loops = [
        InitialClosedLoop(server=cell.server, rate_result=cell.rate_result) for cell in trials.cells
    ]
    return RunInfo(
        schema_version=1,
        started_utc=trials.directory.started,
        status="complete",
        plan=raw_plan(experiment.without_secrets()),
        host=host,
        closed_loops=tuple(closed_loops),
    )


def _goodput_per_s(cell: CellResult) -> float:
    if cell.failure is not None or cell.rate_result is None:
        return 0.0
    return cell.rate_result.goodput_per_s or 0.0


def _without_response(cells: Sequence[CellResult]) -> WsgiloadError:
    """The error if no closed loop got a response; a server's failure takes precedence over one of
    the generator or the host."""
    by_servers = [
        cell
        for cell in cells
        if cell.verdict is None or cell.verdict.blame not in ("client", "host")
    ]
    failures = [cell.failure.message for cell in by_servers or cells if cell.failure is not None]
    kind = ServerError if by_servers else LoadError
    if failures:
        return kind(failures[0])  # with its own fix
    fix = "measure at a low rate first, such as --rates 10"
    return kind("no configuration gave a correct response", fix)
