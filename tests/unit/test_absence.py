"""Why a quantile is absent: too few, too few effective, only bounded and infinite are different."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from wsgiload.analysis.absence import absence_of
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.load_report import Bounds, LoadReport, QuantileUncertainty, Uncertainty
from wsgiload.report.cells import read_sweep
from wsgiload.report.findings import response_time_caption, spectrum_caption
from wsgiload.report.load_screen import load_screen
from wsgiload.report.panels import spectrum_chart

from .filled import filled_summary, outcomes
from .invented_cells import cell
from .report_fixture import make_cell


def load_of(scheduled: int, *, is_correlated: bool = False) -> LoadReport:
    report = msgspec.convert(make_cell("waitress", 1000, 1)[1], LoadReport)
    reason = "too_few_effective_requests" if is_correlated else "too_few_requests"
    known = QuantileUncertainty(
        interval_95_ns=(9_000_000, None) if is_correlated else None,
        effective_requests=640.0 if is_correlated else None,
        resolution_status="not_resolved",
        reason=reason,
    )
    return replace(
        report,
        outcomes=outcomes(scheduled),
        uncertainty=Uncertainty(offered_quantiles_ns={"0.99": known}, response_time_ns={}),
    )


def test_correlated_requests_are_not_called_too_few_requests() -> None:
    sentence = load_screen(load_of(1902, is_correlated=True)).sentence
    assert sentence.startswith(
        "p99 needs at least 1,000 requests, but the 1,902 requests are correlated and count as "
        "only 640. 100 % of 1,902 requests got a correct response"
    )


def test_too_few_requests_are_counted() -> None:
    sentence = load_screen(load_of(899)).sentence
    assert sentence.startswith("p99 needs at least 1,000 requests, but only 899 were scheduled.")


FEW = outcomes(899)
FAILED = outcomes(2000, 1500, http_status=500)
TIMED_OUT = outcomes(2000, 1500, timeout=500)


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        (cell("a"), None),
        (cell("a", outcomes=FEW), "too_few_requests"),
        (cell("a", outcomes=None), "not_measured"),
        (cell("a", offered_quantiles_ns={}), "not_measured"),
        (cell("a", p99_ns=None, outcomes=FAILED), "infinite"),
        (cell("a", p99_ns=None, outcomes=TIMED_OUT), "lower_bound"),
        (cell("a", offered_quantiles_ns={"0.99": Bounds(low=None, high=None)}), "infinite"),
    ],
)
def test_each_reason_has_its_own_condition(result: CellResult, kind: str | None) -> None:
    absence = absence_of(result, 0.99)
    assert (None if absence is None else absence.kind) == kind


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (cell("a", outcomes=FEW), "too few requests"),
        (cell("a", p99_ns=None, outcomes=FAILED), "too many requests failed"),
        (
            cell("a", p99_ns=None, outcomes=TIMED_OUT),
            "only a lower bound is known: requests timed out",
        ),
    ],
)
def test_an_absent_p99_is_called_infinite_only_if_requests_failed(
    result: CellResult, reason: str
) -> None:
    sweep = read_sweep(filled_summary({"servers": ("a",), "rates": (1000.0,)}, [result]))
    assert f"p99 unknown: a ({reason})." in response_time_caption(sweep)
    assert f"The ratio of p99 to p50 is unknown ({reason})." == spectrum_caption(sweep, [1000.0])


def test_a_chart_without_quantiles_says_why() -> None:
    few = cell("a", outcomes=outcomes(5))
    sweep = read_sweep(filled_summary({"servers": ("a",), "rates": (1000.0,)}, [few]))
    assert spectrum_chart(sweep).absent == ("at 1,000/s: no quantile is known (too few requests)",)
