"""Chooses the rates if the user gave none: fractions of the highest closed-loop throughput of any
configuration.

A closed loop without think time shows the maximum throughput but not the latency at any rate, so
its result is only a starting point. Its trials have a separate run directory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wsgiload.capacity_search.trials import ServerTrials, TrialPlan, server_trials
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.run_info import HostFacts, InitialClosedLoop, RunInfo
from wsgiload.errors import LoadError, ServerError, UsageError, WsgiloadError
from wsgiload.experiment.plan import Experiment
from wsgiload.host.facts import host_facts
from wsgiload.loads.options import Level
from wsgiload.procedures.capacity import rounded
from wsgiload.report.words import format_measured_per_s, format_per_s
from wsgiload.results.stored_plan import raw_plan
from wsgiload.units import NS_PER_S

# From a rate that most configurations sustain to one at which few still respond in time.
SHARES = (0.3, 0.5, 0.7, 0.85, 0.95)
CLOSED_LOOP_NS = 5 * NS_PER_S
# Within a budget, most of the time belongs to the race.
CLOSED_LOOP_NS_IN_RACE = 2 * NS_PER_S


def require_rates(experiment: Experiment) -> None:
    """Raise UsageError if an objective is combined with a closed loop, which has no rate."""
    if experiment.slo and any(level.rate_per_s is None for level in experiment.levels):
        raise UsageError(
            "--slo and --connections are mutually exclusive: an objective applies to a rate, and a "
            "closed loop has none",
            "use --rates, or omit both to let wsgiload choose the rates",
        )


def find_levels(
    experiment: Experiment, log: Callable[[str], None], closed_loop_ns: int = CLOSED_LOOP_NS
) -> tuple[Level, ...]:
    """The load levels of an open loop, lowest first. Raises the first failure if no configuration
    gave a correct response."""
    host = host_facts()  # before the first load, which would change them
    with server_trials(experiment, log) as (trials, users):
        cells = [
            trials.carry_out(TrialPlan(server, Level(connections=count), 1, closed_loop_ns))
            for server, count in users.items()
        ]
        trials.write_summary("complete")
        trials.directory.write_run(_run_of(experiment, trials, host))

    best_per_s = max(map(_goodput_per_s, cells), default=0.0)
    if not best_per_s:
        raise _without_response(cells)

    levels = tuple(Level(rate_per_s=rounded(best_per_s * share, digits=2)) for share in SHARES)
    listed = ", ".join(format_per_s(level.rate_per_s) for level in levels)
    log(f"rates: {listed}; the fastest configuration reached {format_measured_per_s(best_per_s)}")
    return levels


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
    return kind(
        failures[0] if failures else "no configuration gave a correct response",
        "measure at a low rate first, such as --rates 10",
    )
