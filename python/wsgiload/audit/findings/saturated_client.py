"""The client could not send as planned."""

from __future__ import annotations

from wsgiload.audit.run import Run, alarm
from wsgiload.documents.audit import AuditAlarm
from wsgiload.findings.finding import Finding, percent
from wsgiload.report.words import format_duration_ns, format_per_s, format_ratio

MIN_SENT_SHARE = 0.99
# A send is late if its delay exceeds this and the mean response time.
MAX_LATE_NS = 50_000_000
SATURATED_CLIENT = Finding(
    name="saturated-client",
    examines="other tools' results: the sent rate, compared with the requested rate, and the "
    "length of the largest burst (httperf)",
    premise=f"The sent rate was below {percent(MIN_SENT_SHARE)} of the requested rate, or the "
    f"tool was late by more than {MAX_LATE_NS / 1e6:g} ms and more than the mean response "
    "time: the client limited the load.",
    fix="use a faster client or several, on cores that the server does not use, and check its send "
    "lag (`wsgiload load` reports it)",
)


def saturated_client(run: Run) -> AuditAlarm | None:
    """The client sent fewer requests than requested, or sent some of them late."""
    return _too_slow(run) or _too_late(run)


def _too_slow(run: Run) -> AuditAlarm | None:
    requested, sent = run.figures.requested_per_s, run.figures.sent_per_s
    if requested is None or sent is None or sent >= MIN_SENT_SHARE * requested:
        return None
    return alarm(
        SATURATED_CLIENT,
        f"{run.tool_name} sent fewer requests than requested: its own limits (workers, CPU, "
        "connections) determined the load",
        arithmetic=f"{format_per_s(sent)} sent / {format_per_s(requested)} requested = "
        f"{format_ratio(sent / requested)} (at least {format_ratio(MIN_SENT_SHARE)})",
        value=sent / requested,
        limit=MIN_SENT_SHARE,
    )


def _too_late(run: Run) -> AuditAlarm | None:
    figures = run.figures
    late_ns, mean_ns = figures.max_send_lag_ns or 0, figures.mean_ns or 0
    limit_ns = max(MAX_LATE_NS, mean_ns)
    if late_ns <= limit_ns or figures.requested_per_s is None:
        return None
    burst = late_ns / 1e9 * figures.requested_per_s + 1
    return alarm(
        SATURATED_CLIENT,
        f"{run.tool_name} fell behind its schedule and sent the missing requests in one burst, "
        "which its response times do not show",
        arithmetic=f"burst of {burst:.0f} at {format_per_s(figures.requested_per_s)} = "
        f"{format_duration_ns(late_ns)} late (at most {format_duration_ns(limit_ns)})",
        value=late_ns / 1e6,
        limit=limit_ns / 1e6,
    )
