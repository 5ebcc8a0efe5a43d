"""The achieved rate is below the requested one."""

from __future__ import annotations

from wsgiload.audit.run import ERROR_RESPONSES, Run, alarm
from wsgiload.documents.audit import AuditAlarm
from wsgiload.findings.alarms import RATE_NOT_REACHED
from wsgiload.report.words import format_count, format_duration_ns, format_per_s, format_ratio
from wsgiload.units import NS_PER_S

MIN_ACHIEVED_SHARE = 0.99
# Fewer missing responses may only have been in flight at the end.
MIN_MISSING = 10


def rate_not_reached(run: Run) -> AuditAlarm | None:
    """Fewer responses than requested, or scheduled requests that were never sent."""
    figures = run.figures
    if figures.dropped:
        return _dropped(run, figures.dropped)
    requested, achieved = figures.requested_per_s, figures.achieved_per_s
    if requested is not None and figures.sent_per_s is not None:
        requested = min(requested, figures.sent_per_s)  # `saturated-client` reports the rest
    if requested is None or not achieved or not figures.duration_ns:
        return None

    expected = requested * _sending_ns(run) / NS_PER_S
    responses = (figures.requests or 0) + _failures(run)
    if responses >= MIN_ACHIEVED_SHARE * expected or expected - responses < MIN_MISSING:
        return None

    share = responses / expected
    return alarm(
        RATE_NOT_REACHED,
        f"only {format_per_s(achieved)} of the requested {format_per_s(requested)} was achieved, "
        "so the times do not describe that rate",
        arithmetic=f"{format_count(responses)} responses and failures / {format_count(expected)} "
        f"requests due in {format_duration_ns(_sending_ns(run))} = {format_ratio(share)} (at "
        f"least {format_ratio(MIN_ACHIEVED_SHARE)})",
        value=share,
        limit=MIN_ACHIEVED_SHARE,
    )


def _failures(run: Run) -> int:
    """Requests that were sent and failed; other findings report them."""
    errors = run.figures.errors
    return sum(number for kind, number in errors.items() if kind not in ERROR_RESPONSES)


def _sending_ns(run: Run) -> float:
    """The duration without the wait for the last responses."""
    duration_ns = run.figures.duration_ns or 0
    return max(0, duration_ns - (run.figures.mean_ns or 0))


def _dropped(run: Run, dropped: int) -> AuditAlarm:
    requests = run.figures.requests or 0
    share = dropped / (dropped + requests)
    return alarm(
        RATE_NOT_REACHED,
        f"{format_count(dropped)} iterations were due and never started, because all virtual "
        "users were busy: the response times do not include them",
        arithmetic=f"{format_count(dropped)} dropped / ({format_count(dropped)} + "
        f"{format_count(requests)} requests) = {format_ratio(share)}",
        fix=f"raise maxVUs, or {RATE_NOT_REACHED.fix}",
        value=1 - share,
        limit=1,
    )
