"""Thresholds are parsed exactly and decided only by what is certain."""

from __future__ import annotations

from typing import Any

import pytest

from wsgiload.analysis.threshold import (
    Threshold,
    failed_thresholds,
    parse_threshold,
    undecided_thresholds,
)
from wsgiload.documents.load_report import Bounds
from wsgiload.errors import UsageError

from .canned_load import canned_load
from .filled import distribution, exactly, filled_cell, outcomes, rates

FIGURES: dict[str, Any] = {
    "offered_quantiles_ns": {
        "0.5": exactly(1_000_000),
        "0.99": Bounds(low=40_000_000, high=60_000_000),
        "0.999": Bounds(low=90_000_000, high=None),
    },
    "outcomes": outcomes(1000, 995, timeout=5),
}
RATES = rates(980.0, offered_per_s=1000.0, sent_per_s=1000.0, achieved_per_s=990.0)
RESULT = filled_cell(rate_result=RATES, **FIGURES)


@pytest.mark.parametrize(
    ("text", "figure", "comparison", "limit"),
    [
        ("p99<50ms", "p99", "<", 50_000_000),
        ("p50 <= 1.5s", "p50", "<=", 1_500_000_000),
        ("p50<0", "p50", "<", 0),
        (" p99.9 < 2s ", "p99.9", "<", 2_000_000_000),
        ("error_rate<0.1%", "error_rate", "<", 0.001),
        ("error_rate<=1%", "error_rate", "<=", 0.01),
        ("error_rate<=0", "error_rate", "<=", 0.0),
        ("goodput>=1000", "goodput", ">=", 1000.0),
    ],
)
def test_a_threshold_is_a_figure_a_comparison_and_a_limit(
    text: str, figure: str, comparison: str, limit: float
) -> None:
    assert parse_threshold(text) == Threshold(text, figure, comparison, pytest.approx(limit))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is not a threshold; write it like 'p99<50ms'"),
        ("p99", "'p99' is not a threshold"),
        ("p99=50ms", "'p99=50ms' is not a threshold"),
        ("p98<50ms", "'p98<50ms': unknown figure 'p98'; choose one of p50, p90, p95, p99"),
        ("p99<fast", "'fast' is not a duration"),
        ("goodput>much", "'goodput>much': 'much' is not a number"),
        ("error_rate<nan", "'error_rate<nan': 'nan' is not a finite number"),
        ("goodput>=inf", "'goodput>=inf': 'inf' is not a finite number"),
        ("error_rate<-1%", "'error_rate<-1%': '-1%' is not a finite number"),
        (
            "goodput>=95%",
            "'goodput>=95%': goodput is a rate per second, not a percentage; for a percentage "
            "write error_rate<5%",
        ),
        (
            "p99<50",
            "'p99<50' has no unit: it may mean 50ms or 50s; write 'p99<50ms' or 'p99<50s'",
        ),
        (
            "error_rate < 0.01",
            "'error_rate < 0.01' has no unit: it may mean 0.01% or 1%; write 'error_rate<0.01%' or "
            "'error_rate<1%'",
        ),
        ("p(99)<50", "'p(99)<50' is a threshold of k6; write 'p99<50ms'"),
        (
            "http_req_duration: p(99.9) <= 1s",
            "'http_req_duration: p(99.9) <= 1s' is a threshold of k6; write 'p99.9<=1s'",
        ),
        ("med<20.5", "'med<20.5' is a threshold of k6; write 'p50<20.5ms'"),
        (
            "http_req_failed<0.01",
            "'http_req_failed<0.01' is a threshold of k6; write 'error_rate<1%'",
        ),
        (
            "http_req_failed: rate<0.05",
            "'http_req_failed: rate<0.05' is a threshold of k6; write 'error_rate<5%'",
        ),
        (
            "avg<200",
            "'avg<200' is a threshold of k6 on a figure that wsgiload does not judge; choose one of "
            "p50, p90, p95, p99, p99.9, p99.99, such as 'p50<200ms'",
        ),
        ("p(97)<5", "'p(97)<5' is a threshold of k6 on a figure that wsgiload does not judge"),
    ],
)
def test_an_invalid_threshold_is_refused_with_an_example(text: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_threshold(text)
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("p50<1ms", False),
        ("p50<=1ms", True),
        ("p99<50ms", False),  # its upper bound is 60 ms
        ("p99<61ms", True),
        ("p99.9<10s", False),  # unbounded above: not met
        ("p99.99<10s", False),  # unknown
        ("error_rate<=0.5%", True),
        ("error_rate<0.4%", False),
        ("goodput>=980", True),
        ("goodput>980", False),
    ],
)
def test_the_upper_bound_of_a_quantile_counts_and_an_unknown_one_fails(
    text: str, holds: bool
) -> None:
    assert parse_threshold(text).holds(RESULT) is holds


def test_a_cell_without_a_result_meets_no_threshold() -> None:
    cell = filled_cell()
    for text in ("p99<1h", "error_rate<=100%", "goodput>=0"):
        assert not parse_threshold(text).holds(cell)
    assert not parse_threshold("error_rate<=100%").holds(filled_cell(outcomes=outcomes(0)))


def test_cells_and_load_reports_are_judged_alike() -> None:
    report = canned_load(rate=RATES, **FIGURES)
    for text in ("goodput>=980", "goodput>980", "p99<61ms", "p99<50ms", "error_rate<=0.5%"):
        assert parse_threshold(text).holds(report) is parse_threshold(text).holds(RESULT), text
    assert parse_threshold("goodput>=980").holds(report)


def test_each_failure_is_a_sentence_that_names_its_cell() -> None:
    thresholds = [parse_threshold("p99<50ms"), parse_threshold("p50<=1ms")]
    assert failed_thresholds(thresholds, [("wsgiref@100#1", RESULT)]) == [
        "threshold p99<50ms failed for wsgiref@100#1"
    ]
    assert failed_thresholds(thresholds, [("", RESULT)]) == ["threshold p99<50ms failed"]
    assert failed_thresholds([], [("", RESULT)]) == []


@pytest.mark.parametrize(
    ("figure", "needed"),
    [("p50", 20), ("p99", 1_000), ("p99.9", 10_000), ("p99.99", 100_000)],
)
def test_a_quantile_needs_ten_requests_beyond_it(figure: str, needed: int) -> None:
    threshold = parse_threshold(f"{figure}<1h")
    fast = {key: exactly(1_000) for key in ("0.5", "0.9", "0.95", "0.99", "0.999", "0.9999")}
    for requests, is_decided in ((needed, True), (needed - 1, False)):
        cell = filled_cell(outcomes=outcomes(requests, requests), offered_quantiles_ns=fast)
        assert threshold.is_decided(cell) is is_decided
        assert (undecided_thresholds([threshold], [("", cell)]) == []) is is_decided
        assert failed_thresholds([threshold], [("", cell)]) == []


def test_an_undecided_threshold_names_the_requests_needed() -> None:
    few = filled_cell(outcomes=outcomes(3, 3), offered_quantiles_ns={"0.999": exactly(1_000)})
    thresholds = [parse_threshold("p99.9<500ms"), parse_threshold("error_rate<=0")]
    assert undecided_thresholds(thresholds, [("wsgiref@3#1", few)]) == [
        "threshold p99.9<500ms undecided for wsgiref@3#1: p99.9 needs 10,000 requests, but only 3 "
        "were scheduled. Measure longer, or choose a lower quantile"
    ]
    assert failed_thresholds(thresholds, [("", few)]) == []


@pytest.mark.parametrize(
    ("text", "is_failed"),
    [
        ("p99.9<30ms", True),  # p99 is at least 40 ms
        ("p99.9<50ms", False),  # p99 may be 40 ms
        ("p99.9>30ms", False),
    ],
)
def test_a_lower_quantile_can_only_fail_a_higher_one(text: str, is_failed: bool) -> None:
    threshold = parse_threshold(text)
    assert bool(failed_thresholds([threshold], [("", RESULT)])) is is_failed
    assert bool(undecided_thresholds([threshold], [("", RESULT)])) is not is_failed


def test_failures_beyond_a_lower_quantile_fail_a_higher_one() -> None:
    cell = filled_cell(
        outcomes=outcomes(1000, 500, http_status=500),
        offered_quantiles_ns={"0.9": Bounds(low=None, high=None)},
    )
    assert failed_thresholds([parse_threshold("p99.9<10s")], [("", cell)])


@pytest.mark.parametrize(
    ("requests", "failures", "max_ns", "is_decided"),
    [
        (299, 0, 49_000_000, True),
        (298, 0, 49_000_000, False),
        (299, 0, 51_000_000, False),
        (299, 1, 49_000_000, False),
    ],
)
def test_fewer_requests_suffice_if_all_meet_the_threshold(
    requests: int, failures: int, max_ns: int, is_decided: bool
) -> None:
    cell = filled_cell(
        outcomes=outcomes(requests, requests - failures, timeout=failures),
        offered_quantiles_ns={"0.99": exactly(2_000_000)},
        response_time_ns=distribution(max=max_ns),
    )
    threshold = parse_threshold("p99<50ms")
    assert threshold.is_decided(cell) is is_decided
    assert failed_thresholds([threshold], [("", cell)]) == []
