"""The first screen of one load: the question, the answer, its figures, and what could change
them. Pure."""

from __future__ import annotations

from wsgiload.analysis.alarms import alarms_of_load
from wsgiload.documents.load_report import LoadReport
from wsgiload.report import load_figures, words
from wsgiload.report.answer import MOST_CAUTIONS
from wsgiload.report.cells import quantile_ns
from wsgiload.report.page_parts import AnswerBox, markdown_of

NOTE = (
    "p99 over all offered requests, from the scheduled send time, with its 95 % confidence "
    "interval; the table of times covers the correct responses."
)


def load_screen(report: LoadReport) -> AnswerBox:
    """The first screen."""
    box = AnswerBox(
        question=f"How does {report.plan.url} respond {_where(report)}?",
        sentence=_sentence(report),
        command_line=None,
        needs=None,
        tables=[_rates(report), (list(load_figures.TIME_HEADINGS), load_figures.time_rows(report))],
        cautions=tuple(_cautions(report)),
        markdown="",
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


def _sentence(report: LoadReport) -> str:
    outcomes = report.outcomes
    share = (
        f"{words.format_ratio(words.ok_ratio(outcomes))} of "
        f"{words.plural(outcomes.scheduled, 'request')} got a correct response"
    )
    if not outcomes.ok:
        kinds = words.failures_by_kind(outcomes).items()
        counts = ", ".join(f"{kind} {words.format_count(count)}" for kind, count in kinds)
        return f"No request got a correct response ({counts or 'none was scheduled'})."
    if report.verdict.status == "invalid":
        return (
            f"The measurement is {words.verdict_words(report.verdict)}, so its figures must not "
            f"be used; {share}."
        )
    if report.stationarity.state == "unstable":
        goodput = words.format_per_s(report.rate.goodput_per_s)
        return (
            f"The server does not sustain this rate: response times grow with the duration, and "
            f"goodput is {goodput}; {share}."
        )

    p99 = load_figures.headline_p99(report)
    lead = f"p99 is {p99}" if p99 != words.MISSING else "There are too few requests for a p99"
    goodput = words.format_per_s(report.rate.goodput_per_s)
    return f"{lead}; {share} (goodput {goodput})."


def _rates(report: LoadReport) -> tuple[list[str], list[list[str]]]:
    rate, lag = report.rate, quantile_ns(report.send_lag_ns, 0.99)
    figures = {
        "offered": load_figures.offered_words(report),
        "sent": words.format_per_s(rate.sent_per_s),
        "achieved": words.format_per_s(rate.achieved_per_s),
        "goodput": words.format_per_s(rate.goodput_per_s),
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
    """At most five lines: the findings of the checks, the gravest first, and alarms."""
    ordered = sorted(report.verdict.reasons, key=lambda reason: reason.level != "invalid")
    lines = [words.reason_words(reason) for reason in ordered]
    lines += [words.reason_words(alarm.reason()) for alarm in alarms_of_load(report)]
    if len(lines) <= MOST_CAUTIONS:
        return lines
    kept = lines[: MOST_CAUTIONS - 1]
    return [*kept, f"{len(lines) - len(kept)} more; the list of all is below"]
