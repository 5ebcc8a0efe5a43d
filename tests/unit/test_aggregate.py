"""Aggregates over the runs of one server at one load level."""

from __future__ import annotations

import math
from statistics import fmean, stdev

import msgspec
import pytest

from wsgiload.analysis.aggregate import aggregate_cells
from wsgiload.analysis.attempts import is_discarded
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.load_report import QuantileUncertainty, Uncertainty

from .filled import outcomes
from .invented_cells import cell, invalid, runs_of

SIX_P99S_NS = [10e6, 11e6, 12e6, 9e6, 10.5e6, 30e6]


def test_six_runs_have_a_median_a_range_an_interval_and_a_cv() -> None:
    [entry] = aggregate_cells(runs_of("waitress", SIX_P99S_NS))
    assert (entry.server, entry.rate, entry.connections) == ("waitress", 1000.0, None)
    assert (entry.runs, entry.discarded) == ((1, 2, 3, 4, 5, 6), 0)

    figure = entry.figures.p99
    assert figure.values == tuple(SIX_P99S_NS)
    assert (figure.median, figure.min, figure.max) == (10.75e6, 9e6, 30e6)

    logs = [math.log(value) for value in SIX_P99S_NS]
    half_width = 2.5706 * stdev(logs) / math.sqrt(6)
    assert figure.interval_95 == pytest.approx(
        [math.exp(fmean(logs) - half_width), math.exp(fmean(logs) + half_width)], rel=1e-5
    )
    assert figure.mean == pytest.approx(math.exp(fmean(logs)))
    assert figure.between_run_cv == pytest.approx(math.sqrt(math.exp(stdev(logs) ** 2) - 1))
    assert (figure.trimmed_mean, figure.reason) == (None, None)


def with_interval(run: CellResult, factor: float | None) -> CellResult:
    """The run with a 95 % interval of its p99, from p99 / factor to p99 * factor."""
    assert run.offered_quantiles_ns is not None
    p99_ns = run.offered_quantiles_ns["0.99"].high
    assert p99_ns is not None

    p99 = QuantileUncertainty(
        interval_95_ns=None if factor is None else (round(p99_ns / factor), round(p99_ns * factor)),
        effective_requests=None,
        resolution_status="resolved",
        reason=None,
    )

    uncertainty = Uncertainty(offered_quantiles_ns={"0.99": p99}, response_time_ns={})
    return msgspec.structs.replace(run, uncertainty=uncertainty)


@pytest.mark.parametrize(
    ("error", "between_run_share"), [(0.0, 1.0), (0.05, 0.75), (0.1, 0.0), (0.3, 0.0)]
)
def test_the_variance_within_runs_is_separated_from_that_between_runs(
    error: float, between_run_share: float
) -> None:
    """The log p99s have a standard deviation of 0.1, including the error within runs."""
    p99s = [10e6 * math.exp(0.1 * math.sqrt(3) / 2 * sign) for sign in (1, -1, 1, -1)]
    runs = [with_interval(run, math.exp(2.0452 * error)) for run in runs_of("waitress", p99s)]
    [entry] = aggregate_cells(runs)
    assert entry.figures.p99.between_run_share == pytest.approx(between_run_share, abs=1e-4)
    assert entry.figures.goodput.between_run_share is None


def test_the_between_run_share_needs_an_interval_of_every_run() -> None:
    runs = runs_of("waitress", SIX_P99S_NS)
    assert aggregate_cells(runs)[0].figures.p99.between_run_share is None

    some_unknown = [with_interval(run, None if run.run == 3 else 1.1) for run in runs]
    assert aggregate_cells(some_unknown)[0].figures.p99.between_run_share is None

    three = [with_interval(run, 1.1) for run in runs[:3]]
    assert aggregate_cells(three)[0].figures.p99.between_run_share is None, "three runs are too few"


@pytest.mark.parametrize(
    ("runs", "reason"),
    [
        (1, "only 1 of 4 required runs"),
        (2, "only 2 of 4 required runs"),
        (3, "only 3 of 4 required runs"),
        (4, None),
    ],
)
def test_fewer_than_four_runs_have_no_interval_and_a_reason(runs: int, reason: str | None) -> None:
    figure = aggregate_cells(runs_of("waitress", SIX_P99S_NS[:runs]))[0].figures.p99
    assert figure.reason == reason
    assert (figure.interval_95 is None) == (reason is not None)
    assert figure.median is not None


def test_an_unbounded_p99_is_not_a_number_and_allows_no_interval() -> None:
    figure = aggregate_cells(runs_of("waitress", [10e6, 11e6, None, 12e6, 13e6]))[0].figures.p99
    assert figure.values == (10e6, 11e6, None, 12e6, 13e6)
    assert (figure.median, figure.min, figure.max) == (12e6, 10e6, None)
    assert (figure.interval_95, figure.reason) == (None, "no finite value in 1 of 5 runs")

    mostly_unbounded = aggregate_cells(runs_of("waitress", [10e6, None, None]))[0].figures.p99
    assert (mostly_unbounded.median, mostly_unbounded.min) == (None, 10e6)


def test_a_quantile_of_too_few_requests_is_missing() -> None:
    few = runs_of("waitress", SIX_P99S_NS, outcomes=outcomes(5_000))
    figures = aggregate_cells(few)[0].figures
    assert figures.p99.reason is None
    assert figures.p99_9.reason == "too few requests for p99.9 in 6 of 6 runs"
    assert figures.p99_9.median is None


def test_client_faults_are_discarded_and_server_faults_count() -> None:
    cells = runs_of("waitress", SIX_P99S_NS)
    cells[0] = invalid(cells[0], "client")
    cells[1] = invalid(cells[1], "server")
    assert [is_discarded(result) for result in cells[:3]] == [True, False, False]

    [entry] = aggregate_cells(cells)
    assert (entry.runs, entry.discarded) == ((2, 3, 4, 5, 6), 1)
    assert entry.figures.p99.reason == "no finite value in 1 of 5 runs"
    assert entry.figures.goodput.min == 0


def test_a_rerun_replaces_a_discarded_trial_whatever_its_result() -> None:
    """A slow rerun counts instead of the fast but invalid first attempt."""
    cells = [
        invalid(cell("waitress", 1, 1e6)),
        cell("waitress", 1, 99e6),
        *runs_of("waitress", SIX_P99S_NS)[1:],
    ]
    [entry] = aggregate_cells(cells)
    assert entry.figures.p99.values == (99e6, *SIX_P99S_NS[1:])
    assert entry.discarded == 1


def test_a_load_level_without_valid_runs_is_listed() -> None:
    [entry] = aggregate_cells([invalid(cell("waitress"), "host")])
    assert (entry.runs, entry.discarded) == ((), 1)
    assert entry.figures.p99.reason == "no valid run"
    assert entry.figures.p99.median is None


def test_the_trimmed_mean_omits_the_lowest_and_the_highest_run() -> None:
    figure = aggregate_cells(runs_of("waitress", SIX_P99S_NS), "trim")[0].figures.p99
    assert figure.trimmed_mean == pytest.approx(fmean([10e6, 10.5e6, 11e6, 12e6]))
    assert figure.interval_95 is not None, "the interval is still given"

    for values in (SIX_P99S_NS[:2], [*SIX_P99S_NS[:4], None]):
        [entry] = aggregate_cells(runs_of("waitress", values), "trim")
        assert entry.figures.p99.trimmed_mean is None


def test_servers_aliases_and_load_levels_are_aggregated_separately() -> None:
    cells = [cell("waitress"), cell("waitress", rate=2000.0), cell("again", server="waitress")]
    assert [(entry.server, entry.rate) for entry in aggregate_cells(cells)] == [
        ("waitress", 1000.0),
        ("waitress", 2000.0),
        ("again", 1000.0),
    ]
