"""The figures of one load as text, for the terminal and the page, and its first screen: the
question, the answer, figures and warnings. Pure; it computes nothing."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console

from wsgiload.analysis.absence import absence_of, enough_requests
from wsgiload.documents.load_plan import OpenLoop
from wsgiload.documents.load_report import (
    Distribution,
    LoadReport,
    Outcomes,
    QuantileUncertainty,
    RequestCounts,
)
from wsgiload.findings.alarms import alarms_of_load
from wsgiload.report import words
from wsgiload.report.answer_box import AnswerBox, markdown_of, print_answer
from wsgiload.report.cautions import at_most_five
from wsgiload.report.cells import HEADLINE, quantile_ns

# Columns that a narrow terminal omits, the first one first.
_DISPENSABLE = ("achieved", "sent", "send lag p99", "memory", "CPU cores", "correct", "p99.9")
NOTE = (
    "p99 response time over all scheduled requests, from the scheduled send time, with its 95 % "
    "confidence interval. The table of times covers only correct responses."
)


def print_load_screen(report: LoadReport, console: Console) -> None:
    """Print the first screen of a load."""
    print_answer(load_screen(report), console)


def load_screen(report: LoadReport) -> AnswerBox:
    """The first screen."""
    box = AnswerBox(
        question=f"How does {report.plan.url} respond {_where(report)}?",
        sentence=_sentence(report),
        command_line=None,
        needs=None,
        tables=[_rates(report), (list(TIME_HEADINGS), time_rows(report))],
        cautions=tuple(at_most_five(_cautions(report))),
        markdown="",
        status="decided" if _is_result(report) else "undecided",
        dispensable=_DISPENSABLE,
    )
    return markdown_of(box)


def _where(report: LoadReport) -> str:
    closed = report.plan.load.closed
    if closed is not None:
        return f"to {words.plural(closed.connections, 'user')} in a closed loop"
    schedule = open_loop(report)
    if schedule is not None and schedule.rate_per_s is not None and not report.plan.sessions:
        return f"at {words.format_per_s(schedule.rate_per_s)}"
    return f"at {offered_words(report)}"


def _is_result(report: LoadReport) -> bool:
    return bool(report.outcomes.ok) and report.verdict.status != "invalid"


def _share(outcomes: Outcomes, goodput: str | None = None) -> str:
    """``98 % of 5,000 requests got a correct response (goodput 490/s, timeout 100)``."""
    details = [f"goodput {goodput}"] if goodput is not None else []
    details += [counts] if (counts := _failures(outcomes)) else []
    shown = f" ({', '.join(details)})" if details else ""
    return (
        f"{words.format_ratio(words.ok_ratio(outcomes))} of "
        f"{words.plural(outcomes.scheduled, 'request')} got a correct response"
        f"{shown}"
    )


def _failures(outcomes: Outcomes) -> str:
    kinds = words.failures_by_kind(outcomes).items()
    return ", ".join(f"{kind}: {words.format_count(count)}" for kind, count in kinds)


def _sentence(report: LoadReport) -> str:
    outcomes = report.outcomes
    share = _share(outcomes)
    if not outcomes.ok:
        counts = _failures(outcomes) or "no request was scheduled"
        return f"No request got a correct response ({counts})."
    if report.verdict.status == "invalid":
        return (
            f"The measurement is {words.verdict_words(report.verdict)}, so its figures must not "
            f"be used. {share}."
        )
    if report.stationarity.state == "unstable":
        goodput = words.format_measured_per_s(report.rate.goodput_per_s)
        return (
            "The server does not sustain this rate: response times grow with the duration, and "
            f"goodput is {goodput}. {share}."
        )

    p99 = headline_p99(report)
    absence = absence_of(report, HEADLINE) if p99 == words.MISSING else None
    lead = f"is {p99}" if absence is None else words.absence_words(absence)
    return (
        f"p99 {lead}. {_share(outcomes, words.format_measured_per_s(report.rate.goodput_per_s))}."
    )


def _rates(report: LoadReport) -> tuple[list[str], list[list[str]]]:
    rate, lag = report.rate, quantile_ns(report.send_lag_ns, 0.99)
    figures = {
        "offered": offered_words(report),
        "sent": words.format_measured_per_s(rate.sent_per_s),
        "achieved": words.format_measured_per_s(rate.achieved_per_s),
        "goodput": words.format_measured_per_s(rate.goodput_per_s),
        "correct": words.format_ratio(words.ok_ratio(report.outcomes)),
        "p99": headline_p99(report),
        "send lag p99": words.format_duration_ns(lag),
    }
    used = None if report.resources is None else report.resources.used
    if used is not None:
        figures["CPU cores"] = words.format_cores(used.cpu_cores_mean)
        figures["memory"] = words.format_bytes(used.memory_peak_bytes)
    return list(figures), [list(figures.values())]


def _cautions(report: LoadReport) -> list[str]:
    """The findings of the checks, the most severe first, alarms, and skipped checks."""
    ordered = sorted(report.verdict.reasons, key=lambda reason: reason.level != "invalid")
    lines = [words.reason_words(reason) for reason in ordered]
    lines += [words.reason_words(alarm.reason()) for alarm in alarms_of_load(report)]
    lines += _repeats(report)
    unchecked = report.stationarity.reason
    if unchecked is not None:
        lines.append(
            "p99 may include warm-up effects. Response times were not checked for changes "
            f"(stationarity): {unchecked}"
        )
    return lines


def _repeats(report: LoadReport) -> list[str]:
    """Which attempts were disturbed, and that the reported one was not selected by its result."""
    disturbed = {number: one.rerun_reason for number, one in enumerate(report.attempts, start=1)}
    reasons = [f"attempt {number}: {why}" for number, why in disturbed.items() if why is not None]
    if not reasons:
        return []
    place = next(number for number, one in enumerate(report.attempts, start=1) if one.reported)
    return [
        f"attempt {place} of {len(report.attempts)} is reported, because it was the least "
        f"disturbed ({'; '.join(reasons)})"
    ]


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
