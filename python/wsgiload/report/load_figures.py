"""The figures of one load as text, for the terminal and the page. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from wsgiload.analysis.absence import enough_requests
from wsgiload.documents.load_plan import OpenLoop
from wsgiload.documents.load_report import (
    Distribution,
    LoadReport,
    QuantileUncertainty,
    RequestCounts,
)
from wsgiload.report import words
from wsgiload.report.cells import quantile_ns

_QUANTILES = (0.5, 0.9, 0.99, 0.999)
_P99 = 0.99
REQUEST_HEADINGS = ("request", "scheduled", "ok", "failed", "p50", "p99", "max")
TIME_HEADINGS = (
    "time",
    "count",
    *(words.quantile_name(quantile) for quantile in _QUANTILES),
    "max",
)


def offered_words(report: LoadReport) -> str:
    """The offered rate; the mean if it varies."""
    if report.rate.offered_per_s is None:
        return "closed loop"
    offered = words.format_measured_per_s(report.rate.offered_per_s)
    schedule = open_loop(report)
    varied = schedule is not None and schedule.rate_per_s is None
    return f"{offered} on average" if varied else offered


def open_loop(report: LoadReport) -> OpenLoop | None:
    """The schedule; None in a closed loop."""
    return report.plan.load.open


def headline_p99(report: LoadReport) -> str:
    """p99 over all scheduled requests with its uncertainty, or why there is none."""
    if report.stationarity.state == "unstable":
        return "grows with the duration"
    outcomes, key = report.outcomes, f"{_P99:g}"
    known = report.uncertainty.offered_quantiles_ns.get(key)
    shown = words.may_be_shown(known, outcomes.scheduled, _P99)
    bounds = (report.offered_quantiles_ns or {}).get(key) if shown else None
    return words.with_uncertainty(words.format_bounds(bounds, _P99, outcomes), known)


def time_rows(report: LoadReport) -> list[list[str]]:
    """One row for each time: its name, count, quantiles and maximum."""
    known = report.uncertainty.response_time_ns
    others = {
        "service time": report.service_time_ns,
        "send lag": report.send_lag_ns,
        "pool wait": report.pool_wait_ns,
        "connect": report.connect_time_ns,
        "first byte": report.first_byte_ns,
        "transfer": report.transfer_ns,
    }
    return [
        ["response time", *_times(report.response_time_ns, known)],
        *([name, *_times(distribution, {})] for name, distribution in others.items()),
    ]


def _times(
    distribution: Distribution | None, uncertainty: Mapping[str, QuantileUncertainty]
) -> list[str]:
    """Count, quantiles and maximum; quantiles with too few requests are omitted."""
    if distribution is None:
        return [words.NOT_MEASURED, *[words.MISSING] * (len(_QUANTILES) + 1)]
    shown = []
    for quantile in _QUANTILES:
        known = uncertainty.get(f"{quantile:g}")
        enough = words.may_be_shown(known, distribution.count, quantile)
        value_ns = quantile_ns(distribution, quantile) if enough else None
        shown.append(words.format_duration_ns(value_ns))
    longest = words.format_duration_ns(distribution.max)
    return [words.format_count(distribution.count), *shown, longest]


def request_rows(report: LoadReport, max_rows: int, slowest: int) -> list[tuple[str, ...]]:
    """One row per target in the order of the plan; with more than ``max_rows``, only the
    ``slowest`` ones."""
    targets = report.targets
    if len(targets) > max_rows:
        targets = tuple(sorted(targets, key=_slowness, reverse=True)[:slowest])
    return [(target.name, *_request_figures(target)) for target in targets]


def shown_requests(report: LoadReport, shown: int) -> str:
    """Which requests the table shows; empty if all."""
    if shown == len(report.targets):
        return ""
    is_timed = any(target.p99_ns is not None for target in report.targets)
    by = "the highest p99" if is_timed else "the most failures (too many to record their times)"
    count = words.format_count(len(report.targets))
    return f"the {shown} of {count} requests with {by}; --json FILE writes all"


def _slowness(target: RequestCounts) -> tuple[int, int, int]:
    """Sort key: p99; without quantiles, failures and then scheduled requests."""
    return (target.p99_ns or 0, target.failed, target.scheduled)


def _request_figures(target: RequestCounts) -> list[str]:
    counts = [words.format_count(count) for count in (target.scheduled, target.ok, target.failed)]
    times = []
    for quantile, value_ns in ((0.5, target.p50_ns), (_P99, target.p99_ns)):
        enough = enough_requests(target.ok, quantile)
        times.append(words.format_duration_ns(value_ns if enough else None))
    return [*counts, *times, words.format_duration_ns(target.max_ns)]
