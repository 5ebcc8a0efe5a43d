"""Failed requests that are missing from the response times."""

from __future__ import annotations

from wsgiload.audit.findings.no_keepalive import no_keepalive
from wsgiload.audit.run import Run, alarm, kinds_of
from wsgiload.documents.audit import AuditAlarm
from wsgiload.findings.finding import Finding, percent
from wsgiload.report.words import format_count, format_ratio

MAX_SHARE = 0.001
FAILURES_LEFT_OUT = Finding(
    name="failures-left-out",
    examines="other tools' results: failed requests that the tool excludes from its response times",
    premise=f"More than {percent(MAX_SHARE)} of the requests failed, so the times describe only "
    "the successful ones.",
    fix="count a failed request as slower than all others, as `wsgiload load` does, or "
    "report the failures next to each quantile",
)


def failures_left_out(run: Run) -> AuditAlarm | None:
    """The response times only include successful requests."""
    figures, tool = run.figures, run.tool
    if not figures.requests:
        return None
    left_out = {kind: n for kind, n in figures.errors.items() if kind not in tool.timed_errors}
    # These errors are closed or failed connections, not lost requests.
    if no_keepalive(run) is not None:
        left_out.pop("read", None)
    if tool.keeps_failed_connections:
        left_out.pop("connect", None)
    failed = sum(left_out.values())
    share = failed / (figures.requests + failed)
    if share <= MAX_SHARE:
        return None

    return alarm(
        FAILURES_LEFT_OUT,
        f"the response times do not include {format_count(failed)} failed requests, only those "
        "that succeeded",
        arithmetic=f"{format_count(failed)} failed ({kinds_of(left_out)}) / "
        f"{format_count(figures.requests + failed)} requests = {format_ratio(share)} "
        f"(at most {format_ratio(MAX_SHARE)})",
        value=share,
        limit=MAX_SHARE,
    )
