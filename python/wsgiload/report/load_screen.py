"""The first screen of one load: the question, the answer, its figures, and warnings. Pure; it
computes nothing."""

from __future__ import annotations

from rich.console import Console

from wsgiload.analysis.absence import absence_of
from wsgiload.documents.load_report import LoadReport, Outcomes
from wsgiload.findings.alarms import alarms_of_load
from wsgiload.report import load_figures, words
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
        tables=[_rates(report), (list(load_figures.TIME_HEADINGS), load_figures.time_rows(report))],
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
    schedule = load_figures.open_loop(report)
    if schedule is not None and schedule.rate_per_s is not None and not report.plan.sessions:
        return f"at {words.format_per_s(schedule.rate_per_s)}"
    return f"at {load_figures.offered_words(report)}"


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

    p99 = load_figures.headline_p99(report)
    absence = absence_of(report, HEADLINE) if p99 == words.MISSING else None
    lead = f"is {p99}" if absence is None else words.absence_words(absence)
    return (
        f"p99 {lead}. {_share(outcomes, words.format_measured_per_s(report.rate.goodput_per_s))}."
    )


def _rates(report: LoadReport) -> tuple[list[str], list[list[str]]]:
    rate, lag = report.rate, quantile_ns(report.send_lag_ns, 0.99)
    figures = {
        "offered": load_figures.offered_words(report),
        "sent": words.format_measured_per_s(rate.sent_per_s),
        "achieved": words.format_measured_per_s(rate.achieved_per_s),
        "goodput": words.format_measured_per_s(rate.goodput_per_s),
        "correct": words.format_ratio(words.ok_ratio(report.outcomes)),
        "p99": load_figures.headline_p99(report),
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
