"""The offered rate with the highest efficiency: the largest ratio of goodput to mean response time.
Pure.

This ratio is Kleinrock's power: serving more increases it, and longer response times reduce it.
Unlike a knee in a curve, its maximum does not depend on the scales of the axes. In an M/M/1 queue,
it is at half of the capacity. L. Kleinrock, "Power and deterministic rules of thumb for
probabilistic problems in computer communications", ICC 1979.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from wsgiload.analysis.aggregate import GOODPUT, counted_runs, figure_of
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.over_cells import Efficiency, EfficiencyPoint
from wsgiload.units import NS_PER_S

# The best rate must have a neighbor on either side.
MIN_RATES = 3
# With fewer correct responses, the mean would only describe the few requests that were served.
MIN_CORRECT = 0.99


def power_of(cell: CellResult) -> float | None:
    """Correct responses per second divided by their mean response time, in 1/s².

    0 if the server failed, or more than 1 % of the requests: a failure counts as infinitely slow.
    None: unknown.
    """
    goodput_per_s = figure_of(cell, GOODPUT)
    if goodput_per_s is None:
        return None

    outcomes = cell.outcomes
    if not goodput_per_s or outcomes is None or outcomes.ok < MIN_CORRECT * outcomes.scheduled:
        return 0.0

    times = cell.response_time_ns
    return goodput_per_s / (times.mean / NS_PER_S) if times is not None and times.mean else None


def power_points(cells: Sequence[CellResult]) -> tuple[Efficiency, ...]:
    """``efficiency`` of summary.json: the rate with the highest efficiency of each server that was
    measured at three or more rates."""
    by_server: dict[str, dict[float, dict[int, float]]] = {}
    for level, runs in counted_runs(cells).items():
        powers = {run: power for run, cell in runs.items() if (power := power_of(cell)) is not None}
        if level.rate is not None and powers:
            by_server.setdefault(level.server, {})[level.rate] = powers

    return tuple(
        _best_rate(server, dict(sorted(by_rate.items())))
        for server, by_rate in by_server.items()
        if len(by_rate) >= MIN_RATES
    )


def _best_rate(server: str, by_rate: Mapping[float, Mapping[int, float]]) -> Efficiency:
    rates = list(by_rate)
    medians = {rate: median(powers.values()) for rate, powers in by_rate.items()}

    peaks = [_peak(medians), *_peaks_of_rounds(by_rate)]
    lowest = rates.index(min(peaks))
    highest = rates.index(max(peaks))
    some_runs = "" if rates.index(peaks[0]) in (0, len(rates) - 1) else " in some runs"
    reason = _why_unknown(max(medians.values()), lowest == 0, highest == len(rates) - 1, some_runs)

    return Efficiency(
        server=server,
        rate=peaks[0] if reason is None else None,
        between=(rates[lowest - 1], rates[highest + 1]) if reason is None else None,
        points=tuple(
            EfficiencyPoint(rate=rate, efficiency_per_s2=power) for rate, power in medians.items()
        ),
        reason=reason,
    )


def _peak(powers: Mapping[float, float]) -> float:
    return max(powers, key=lambda rate: powers[rate])


def _peaks_of_rounds(by_rate: Mapping[float, Mapping[int, float]]) -> list[float]:
    """The rate with the highest efficiency in each run that is valid at every rate; their scatter
    shows the uncertainty."""
    complete = set.intersection(*(set(powers) for powers in by_rate.values()))
    return [_peak({rate: powers[run] for rate, powers in by_rate.items()}) for run in complete]


def _why_unknown(largest: float, is_lowest: bool, is_highest: bool, some_runs: str) -> str | None:
    if not largest:
        return f"fewer than {MIN_CORRECT * 100:.0f} % correct responses at every rate"
    if is_lowest and is_highest:
        return (
            "efficiency peaks at the lowest measured rate in some runs and at the highest in "
            "others. Use more rates"
        )
    if is_lowest or is_highest:
        end, other = ("lowest", "lower") if is_lowest else ("highest", "higher")
        return (
            f"efficiency peaks at the {end} measured rate{some_runs}. Measure {other} rates as well"
        )
    return None
