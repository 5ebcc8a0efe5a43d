"""Aggregates several runs of one server at one load. Pure, from the cells of summary.json.

A run is one observation: its quantile over all offered requests. Quantiles of runs are never
averaged, and requests of different runs are never pooled. The interval is Student's t over the
logarithms of the runs, so it includes run-to-run variation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev, variance
from typing import Literal

from wsgiload.analysis.absence import absence_of
from wsgiload.analysis.attempts import counted_attempts, is_discarded
from wsgiload.documents.cell_result import CellResult, server_of
from wsgiload.documents.over_cells import Aggregate, AggregateFigure, AggregateFigures
from wsgiload.experiment.procedure import Method
from wsgiload.statistics.effect import MIN_RUNS, Interval, mean_interval, t_quantile

Figure = Literal["p50", "p99", "p99.9", "goodput"]

QUANTILES: Mapping[str, float] = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
GOODPUT: Literal["goodput"] = "goodput"
FIGURES: tuple[Figure, ...] = ("p50", "p99", "p99.9", GOODPUT)
MIN_RUNS_TO_TRIM = 3
# Degrees of freedom of the interval within a run: thirty batches (docs/statistics.md).
DEGREES_WITHIN = 29


@dataclass(frozen=True, slots=True)
class ServerLevel:
    """A server and its load level."""

    server: str
    rate: float | None
    connections: int | None


Runs = Mapping[int, CellResult]


def level_of(cell: CellResult) -> ServerLevel:
    """The server, by its name in the experiment, and its load level."""
    return ServerLevel(server_of(cell), cell.rate, cell.connections)


def counted_runs(cells: Sequence[CellResult]) -> dict[ServerLevel, dict[int, CellResult]]:
    """The valid attempt for each level and run; without runs whose attempts were all discarded."""
    by_level: dict[ServerLevel, dict[int, CellResult]] = {level_of(cell): {} for cell in cells}
    for cell in counted_attempts(cells):
        if not is_discarded(cell):
            by_level[level_of(cell)][cell.run] = cell
    return by_level


def figure_of(cell: CellResult, figure: str) -> float | None:
    """A quantile in nanoseconds (infinite if not met, or if only a lower bound is known), or
    correct responses per second; None: unknown."""
    is_valid = cell.verdict is not None and cell.verdict.status != "invalid"
    is_usable = is_valid and cell.failure is None
    if figure == GOODPUT:
        rates = cell.rate_result if is_usable else None
        return 0.0 if rates is None else rates.goodput_per_s

    if not is_usable:
        return math.inf
    probability = QUANTILES[figure]
    absence = absence_of(cell, probability)
    if absence is not None:
        return math.inf if absence.kind in ("infinite", "lower_bound") else None
    bounds = (cell.offered_quantiles_ns or {})[f"{probability:g}"]
    return math.inf if bounds.high is None else float(bounds.high)


def aggregate_cells(
    cells: Sequence[CellResult], method: Method = "interval"
) -> tuple[Aggregate, ...]:
    """``aggregates`` of summary.json: one entry per server and load, in the order of the cells."""
    discarded = [level_of(cell) for cell in cells if is_discarded(cell)]
    return tuple(
        Aggregate(
            server=level.server,
            rate=level.rate,
            connections=level.connections,
            runs=tuple(sorted(runs)),
            discarded=discarded.count(level),
            figures=AggregateFigures(
                p50=_figure(runs, "p50", method),
                p99=_figure(runs, "p99", method),
                p99_9=_figure(runs, "p99.9", method),
                goodput=_figure(runs, GOODPUT, method),
            ),
        )
        for level, runs in counted_runs(cells).items()
    )


def _figure(runs: Runs, figure: Figure, method: Method) -> AggregateFigure:
    cells = [runs[run] for run in sorted(runs)]
    values = [figure_of(cell, figure) for cell in cells]
    known = [value for value in values if value is not None]

    reason = _why_no_inference(values, figure)
    logarithms = [math.log(value) for value in known] if reason is None else []
    interval = mean_interval(logarithms) if logarithms else None

    return AggregateFigure(
        values=tuple(_finite(value) for value in values),
        median=_finite(median(known) if known else math.inf),
        min=_finite(min(known, default=math.inf)),
        max=_finite(max(known, default=math.inf)),
        mean=math.exp(interval.mean) if interval else None,
        interval_95=_low_high(interval) if interval else None,
        # Coefficient of variation of a lognormal distribution with this deviation of the
        # logarithms.
        between_run_cv=math.sqrt(math.expm1(stdev(logarithms) ** 2)) if interval else None,
        between_run_share=between_run_share(cells, figure) if interval else None,
        trimmed_mean=_trimmed_mean(values) if method == "trim" else None,
        reason=reason,
    )


def _low_high(of_logarithms: Interval) -> tuple[float, float]:
    middle = of_logarithms.mean
    half = of_logarithms.half_95
    return math.exp(middle - half), math.exp(middle + half)


def between_run_share(runs: Sequence[CellResult], figure: str) -> float | None:
    """The share of the variance of the runs' logarithms that is between runs; the rest is within
    runs.

    One-way random effects: the variance of the runs' values is the variance between runs plus the
    mean variance within them. None if a run has no closed interval.
    """
    known = [within for cell in runs if (within := _variance_within(cell, figure)) is not None]
    values = [value for cell in runs if (value := figure_of(cell, figure)) is not None]
    if len(known) < len(runs) or len(values) < len(runs):
        return None

    of_values = variance(map(math.log, values))
    return max(0.0, 1 - fmean(known) / of_values) if of_values > 0 else 0.0


def _variance_within(cell: CellResult, figure: str) -> float | None:
    """The variance of the logarithm of one run's quantile, from the 95 % interval within that run;
    None for goodput."""
    if figure not in QUANTILES or cell.uncertainty is None:
        return None

    quantile = cell.uncertainty.offered_quantiles_ns.get(f"{QUANTILES[figure]:g}")
    if quantile is None or quantile.interval_95_ns is None:
        return None
    low_ns, high_ns = quantile.interval_95_ns
    if high_ns is None or low_ns <= 0:
        return None

    half = math.log(high_ns / low_ns) / 2
    return float((half / t_quantile(0.975, DEGREES_WITHIN)) ** 2)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _why_no_inference(values: Sequence[float | None], figure: str) -> str | None:
    count = len(values)
    without = sum(value is None for value in values)
    missed = sum(value is not None and not (math.isfinite(value) and value > 0) for value in values)

    if not count:
        return "no valid run"
    if without:
        return f"too few requests for {figure} in {without} of {count} runs"
    if missed:
        return f"no finite value in {missed} of {count} runs"
    if count < MIN_RUNS:
        return f"only {count} of {MIN_RUNS} required runs"
    return None


def _trimmed_mean(values: Sequence[float | None]) -> float | None:
    """The mean without the lowest and the highest run; None unless every run has a value and at
    least one remains."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    if len(known) < max(MIN_RUNS_TO_TRIM, len(values)):
        return None
    return fmean(sorted(known)[1:-1])
