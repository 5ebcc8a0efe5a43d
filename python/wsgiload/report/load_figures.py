"""The figures of one load as text, for the terminal and the page. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from wsgiload.documents.load_plan import OpenLoop
from wsgiload.documents.load_report import Distribution, LoadReport, QuantileUncertainty
from wsgiload.report import words
from wsgiload.report.cells import quantile_ns

_QUANTILES = (0.5, 0.9, 0.99, 0.999)
_P99 = 0.99
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
