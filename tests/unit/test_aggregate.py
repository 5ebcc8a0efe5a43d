"""Several runs of one server at one load: how far their figure can be trusted, and why when it
cannot."""

from __future__ import annotations

import math
from statistics import fmean, stdev

import msgspec
import pytest

from wsgiload.analysis.aggregate import FIGURES, aggregate_cells, figures_of
from wsgiload.analysis.attempts import is_discarded
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.load_report import QuantileUncertainty, Uncertainty

from .filled import outcomes
from .invented_cells import cell, invalid, runs_of

SIX = [10e6, 11e6, 12e6, 9e6, 10.5e6, 30e6]


def test_six_runs_have_a_median_a_span_an_interval_and_a_spread() -> None:
    [entry] = aggregate_cells(runs_of("waitress", SIX))
    assert (entry.server, entry.rate, entry.connections) == ("waitress", 1000.0, None)
    assert (entry.runs, entry.discarded) == ((1, 2, 3, 4, 5, 6), 0)
    figure = entry.figures.p99
    assert figure.values == tuple(SIX)
    assert (figure.median, figure.min, figure.max) == (10.75e6, 9e6, 30e6)
    logs = [math.log(value) for value in SIX]
    half = 2.5706 * stdev(logs) / math.sqrt(6)
    assert figure.interval_95 == pytest.approx(
        [math.exp(fmean(logs) - half), math.exp(fmean(logs) + half)], rel=1e-5
    )
    assert figure.mean == pytest.approx(math.exp(fmean(logs)))
    assert figure.between_run_cv == pytest.approx(math.sqrt(math.exp(stdev(logs) ** 2) - 1))
    assert (figure.trimmed_mean, figure.reason) == (None, None)


def with_interval(one: CellResult, factor: float | None) -> CellResult:
    """The run with a 95 % interval inside it, from its p99 by this factor to its p99 times it."""
    assert one.offered_quantiles_ns is not None
    p99_ns = one.offered_quantiles_ns["0.99"].high
    assert p99_ns is not None
    known = QuantileUncertainty(
        interval_95_ns=None if factor is None else (round(p99_ns / factor), round(p99_ns * factor)),
        effective_requests=None,
        resolution_status="resolved",
        reason=None,
    )
    uncertainty = Uncertainty(offered_quantiles_ns={"0.99": known}, response_time_ns={})
    return msgspec.structs.replace(one, uncertainty=uncertainty)


@pytest.mark.parametrize(("within", "share"), [(0.0, 1.0), (0.05, 0.75), (0.1, 0.0), (0.3, 0.0)])
def test_the_variance_within_runs_is_told_from_that_between_them(
    within: float, share: float
) -> None:
    """Logarithms with a standard deviation of 0.1, of which each run's own error is a part."""
    p99s = [10e6 * math.exp(0.1 * math.sqrt(3) / 2 * sign) for sign in (1, -1, 1, -1)]
    runs = [with_interval(one, math.exp(2.0452 * within)) for one in runs_of("waitress", p99s)]
    [entry] = aggregate_cells(runs)
    assert entry.figures.p99.between_run_share == pytest.approx(share, abs=1e-4)
    assert entry.figures.goodput.between_run_share is None


def test_a_run_without_an_interval_of_its_own_leaves_the_share_unknown() -> None:
    runs = runs_of("waitress", SIX)
    assert aggregate_cells(runs)[0].figures.p99.between_run_share is None
    some = [with_interval(one, None if one.run == 3 else 1.1) for one in runs]
    assert aggregate_cells(some)[0].figures.p99.between_run_share is None
    three = [with_interval(one, 1.1) for one in runs[:3]]
    assert aggregate_cells(three)[0].figures.p99.between_run_share is None, (
        "no inference from three"
    )


@pytest.mark.parametrize(
    ("runs", "reason"),
    [
        (1, "only 1 of 4 required runs"),
        (2, "only 2 of 4 required runs"),
        (3, "only 3 of 4 required runs"),
        (4, None),
    ],
)
def test_fewer_than_four_runs_carry_no_inference_and_say_so(runs: int, reason: str | None) -> None:
    figure = aggregate_cells(runs_of("waitress", SIX[:runs]))[0].figures.p99
    assert figure.reason == reason
    assert (figure.interval_95 is None) == (reason is not None)
    assert figure.median is not None


def test_what_was_not_met_is_no_number_and_allows_no_interval() -> None:
    figure = aggregate_cells(runs_of("waitress", [10e6, 11e6, None, 12e6, 13e6]))[0].figures.p99
    assert figure.values == (10e6, 11e6, None, 12e6, 13e6)
    assert (figure.median, figure.min, figure.max) == (12e6, 10e6, None)
    assert (figure.interval_95, figure.reason) == (None, "no finite value in 1 of 5 runs")
    most = aggregate_cells(runs_of("waitress", [10e6, None, None]))[0].figures.p99
    assert (most.median, most.min) == (None, 10e6)


def test_a_quantile_of_too_few_requests_is_missing_and_not_made_up() -> None:
    few = runs_of("waitress", SIX, outcomes=outcomes(5_000))
    figures = aggregate_cells(few)[0].figures
    assert figures.p99.reason is None
    assert figures.p99_9.reason == "too few requests for p99.9 in 6 of 6 runs"
    assert figures.p99_9.median is None


def test_the_fault_of_the_client_is_discarded_and_that_of_the_server_counts_against_it() -> None:
    cells = runs_of("waitress", SIX)
    cells[0] = invalid(cells[0], "client")
    cells[1] = invalid(cells[1], "server")
    assert [is_discarded(one) for one in cells[:3]] == [True, False, False]
    [entry] = aggregate_cells(cells)
    assert (entry.runs, entry.discarded) == ((2, 3, 4, 5, 6), 1)
    assert entry.figures.p99.reason == "no finite value in 1 of 5 runs"
    assert entry.figures.goodput.min == 0


def test_of_several_attempts_the_one_that_stands_counts_whatever_it_says() -> None:
    """A rerun replaces a trial that was discarded, and never one that was merely slow."""
    cells = [
        invalid(cell("waitress", 1, 1e6)),
        cell("waitress", 1, 99e6),
        *runs_of("waitress", SIX)[1:],
    ]
    [entry] = aggregate_cells(cells)
    assert entry.figures.p99.values == (99e6, *SIX[1:])
    assert entry.discarded == 1


def test_a_load_at_which_no_run_stands_is_listed_all_the_same() -> None:
    [entry] = aggregate_cells([invalid(cell("waitress"), "host")])
    assert (entry.runs, entry.discarded) == ((), 1)
    assert entry.figures.p99.reason == "no valid run"
    assert entry.figures.p99.median is None


def test_trimmed_the_lowest_and_the_highest_run_are_left_out_of_a_plain_mean() -> None:
    figure = aggregate_cells(runs_of("waitress", SIX), "trim")[0].figures.p99
    assert figure.trimmed_mean == pytest.approx(fmean([10e6, 10.5e6, 11e6, 12e6]))
    assert figure.interval_95 is not None, "the interval stays beside it"
    for values in (SIX[:2], [*SIX[:4], None]):
        [entry] = aggregate_cells(runs_of("waitress", values), "trim")
        assert entry.figures.p99.trimmed_mean is None


def test_servers_and_loads_are_kept_apart_also_where_one_server_has_two_names() -> None:
    cells = [cell("waitress"), cell("waitress", rate=2000.0), cell("again", server="waitress")]
    assert [(entry.server, entry.rate) for entry in aggregate_cells(cells)] == [
        ("waitress", 1000.0),
        ("waitress", 2000.0),
        ("again", 1000.0),
    ]


def test_each_figure_is_looked_up_by_its_name() -> None:
    [entry] = aggregate_cells(runs_of("waitress", SIX))
    figures = entry.figures
    named = [figures_of(figures, name) for name in FIGURES]
    assert named == [figures.p50, figures.p99, figures.p99_9, figures.goodput]
    with pytest.raises(ValueError, match="there is no figure 'p98'"):
        figures_of(figures, "p98")
