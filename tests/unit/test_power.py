"""The rate of maximum efficiency: half the capacity of an M/M/1 queue, and unknown if the measured
rates do not bracket it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from wsgiload.analysis.over_cells import power_of, power_points
from wsgiload.documents.cell_result import CellFailure, CellResult
from wsgiload.documents.over_cells import Efficiency

from .filled import distribution, outcomes, rates
from .invented_cells import cell, invalid

CAPACITY_PER_S = 1_000.0


def queue(rate: float, run: int = 1, server: str = "a", **changes: Any) -> CellResult:
    """An M/M/1 queue, whose mean response time is 1 / (µ - λ)."""
    mean_ns = 1e9 / (CAPACITY_PER_S - rate)
    times = {"rate_result": rates(rate), "response_time_ns": distribution(mean=mean_ns)}
    return cell(server, run, rate=rate, **{**times, **changes})


def only(cells: Sequence[CellResult]) -> Efficiency:
    [entry] = power_points(cells)
    return entry


def test_the_efficiency_of_an_mm1_queue_peaks_at_half_its_capacity() -> None:
    entry = only([queue(100.0 * step) for step in range(9, 0, -1)])
    assert (entry.rate, entry.between, entry.reason) == (500.0, (400.0, 600.0), None)
    expected = {
        rate: rate * (CAPACITY_PER_S - rate) for rate in (100.0 * step for step in range(1, 10))
    }
    assert {one.rate: one.efficiency_per_s2 for one in entry.points} == pytest.approx(expected)
    assert [one.rate for one in entry.points] == sorted(expected)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_the_peak_does_not_depend_on_the_unit_of_time(scale: float) -> None:
    cells = [
        queue(rate, response_time_ns=distribution(mean=scale * 1e9 / (CAPACITY_PER_S - rate)))
        for rate in (300.0, 500.0, 700.0)
    ]
    assert only(cells).rate == 500.0


@pytest.mark.parametrize(
    ("rates", "end"), [((500.0, 600.0, 700.0), "lowest"), ((300.0, 400.0, 500.0), "highest")]
)
def test_a_peak_at_the_lowest_or_highest_rate_is_not_reported(
    rates: tuple[float, ...], end: str
) -> None:
    entry = only([queue(rate) for rate in rates])
    assert (entry.rate, entry.between) == (None, None)
    assert f"efficiency peaks at the {end} measured rate. Measure " in (entry.reason or "")
    assert len(entry.points) == 3


def test_two_rates_and_closed_loops_have_no_peak() -> None:
    assert power_points([queue(400.0), queue(500.0)]) == ()
    closed = [
        cell("a", rate=None, connections=users, response_time_ns=distribution(mean=1e6 * users))
        for users in (1, 2, 4, 8)
    ]
    assert power_points(closed) == ()


def test_runs_that_disagree_widen_the_bracket() -> None:
    rates = (300.0, 400.0, 500.0, 600.0, 700.0)
    fast_at_400 = {"response_time_ns": distribution(mean=1e9 / 1_000)}
    cells = [queue(rate, run) for rate in rates for run in (1, 2, 3)]
    cells[rates.index(400.0) * 3] = queue(400.0, 1, **fast_at_400)
    entry = only(cells)
    assert (entry.rate, entry.between) == (500.0, (300.0, 600.0))


def test_one_run_that_peaks_at_an_end_makes_the_peak_unknown() -> None:
    cells = [queue(rate, run) for rate in (400.0, 500.0, 600.0) for run in (1, 2, 3)]
    cells[-1] = queue(600.0, 3, response_time_ns=distribution(mean=1e9 / 1_000))
    assert "at the highest measured rate in some runs" in (only(cells).reason or "")
    both = [*cells[1:], queue(400.0, 1, response_time_ns=distribution(mean=1e9 / 1_000))]
    assert only(both).reason == (
        "efficiency peaks at the lowest measured rate in some runs and at the highest in others. "
        "Use more rates"
    )


def test_a_run_without_all_rates_counts_only_in_the_medians() -> None:
    cells = [queue(rate, run) for rate in (400.0, 500.0, 600.0) for run in (1, 2, 3)]
    assert only([*cells, queue(600.0, 4)]).between == (400.0, 600.0)
    discarded = [invalid(queue(rate, 4), "host") for rate in (400.0, 500.0)]
    assert only([*cells, *discarded, queue(600.0, 4)]).between == (400.0, 600.0)


def test_discarded_trials_do_not_count() -> None:
    assert power_points([queue(400.0), queue(500.0), invalid(queue(600.0))]) == ()


def test_failures_count_as_infinitely_slow() -> None:
    shed = queue(600.0, response_time_ns=distribution(mean=1.0), outcomes=outcomes(1_000, 989))
    assert power_of(shed) == 0.0
    assert power_of(msgspec.structs.replace(shed, outcomes=outcomes(1_000, 990))) == pytest.approx(
        600e9
    )
    assert only([queue(400.0), queue(500.0), shed]).between == (400.0, 600.0), (
        "measured, but not the peak"
    )

    fallen = queue(600.0, failure=CellFailure(step="load", message="fell over", log_tail=""))
    assert power_of(invalid(fallen, "server")) == 0.0

    failing = [queue(rate, outcomes=outcomes(1_000, 10)) for rate in (1.0, 2.0, 3.0)]
    assert (only(failing).reason or "").startswith("fewer than 99 % correct responses")


def test_without_a_mean_the_efficiency_is_unknown() -> None:
    assert power_of(queue(400.0, response_time_ns=None)) is None
    assert power_points([queue(400.0, response_time_ns=None), queue(500.0), queue(600.0)]) == ()
