"""Alarms about several runs or cells. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev

from wsgiload.documents.cell_result import CellResult, server_of
from wsgiload.findings.finding import Finding, Fired, percent
from wsgiload.findings.limiting_variable import limiting_variables
from wsgiload.units import level_words

# Coefficient of variation between runs.
MAX_BETWEEN_RUNS = 0.1
# Throughput varies by less than this while the number of users at least doubles.
FLAT_WITHIN, MIN_SPREAD = 0.05, 2.0
MIN_LEVELS = 3

RUN_SPREAD = Finding(
    name="run-spread",
    examines="the throughput of the runs of one server at one load level",
    premise=f"Throughput varies by more than {percent(MAX_BETWEEN_RUNS)} between runs (coefficient "
    "of variation).",
    fix="use more --runs on an idle machine",
    misleads="differences of 25 % between identical runs",
    blame="method",
)


def runs_differ(name: str, values: Sequence[float]) -> Fired | None:
    """The runs of one cell vary too much for comparisons."""
    if len(values) < 2 or not fmean(values):
        return None

    variation = stdev(values) / fmean(values)
    if variation <= MAX_BETWEEN_RUNS:
        return None
    message = (
        f"{name}: throughput varies by {variation * 100:.0f} % between {len(values)} runs, so "
        "smaller differences from other servers may be chance"
    )
    return RUN_SPREAD.fired(message, variation, MAX_BETWEEN_RUNS)


FLAT_THROUGHPUT = Finding(
    name="flat-throughput",
    examines=f"closed loop: throughput at {MIN_LEVELS} or more numbers of users",
    premise=f"Throughput varies by at most {percent(FLAT_WITHIN)} while the number of users at "
    "least doubles: the server handles a fixed number of requests at once.",
    fix="compare at a fixed rate (--rate) that the servers sustain",
    misleads="throughput charts that are flat over all numbers of connections",
)


def flat_throughput(name: str, goodput_by_users: Sequence[tuple[int, float]]) -> Fired | None:
    """More users do not give more responses: the server handles a fixed number of requests at
    once."""
    levels = sorted(goodput_by_users)
    if len(levels) < MIN_LEVELS or levels[-1][0] < MIN_SPREAD * levels[0][0]:
        return None

    rates = [goodput for _, goodput in levels]
    spread = max(rates) / min(rates) - 1 if min(rates) > 0 else float("inf")
    if spread > FLAT_WITHIN:
        return None

    lowest = levels[0][0]
    message = (
        f"{name}: throughput is flat at {fmean(rates):,.0f}/s from {lowest:,} to "
        f"{levels[-1][0]:,} users; a limit on threads or connections allows at most {lowest:,} "
        "requests at once"
    )
    return FLAT_THROUGHPUT.fired(message, spread, FLAT_WITHIN)


def alarms_over_cells(cells: Sequence[CellResult]) -> list[Fired]:
    """The alarms from several cells of a summary."""
    runs: dict[str, list[float]] = {}
    levels: dict[str, dict[int, list[float]]] = {}
    for cell in cells:
        goodput_per_s = _valid_goodput(cell)
        if goodput_per_s is None:
            continue
        server = server_of(cell)
        place = f"{server} at {level_words(cell.rate, cell.connections)}"
        runs.setdefault(place, []).append(goodput_per_s)
        if cell.connections is not None:
            of_server = levels.setdefault(server, {})
            of_server.setdefault(cell.connections, []).append(goodput_per_s)

    alarms = [runs_differ(place, values) for place, values in runs.items()]
    alarms += [
        flat_throughput(server, [(users, fmean(values)) for users, values in of_server.items()])
        for server, of_server in levels.items()
    ]
    alarms += limiting_variables(cells)
    return [alarm for alarm in alarms if alarm is not None]


def _valid_goodput(cell: CellResult) -> float | None:
    """Correct responses per second; None if the cell has no valid result."""
    if cell.failure is not None or cell.verdict is None or cell.verdict.status == "invalid":
        return None
    return cell.rate_result.goodput_per_s if cell.rate_result is not None else None
