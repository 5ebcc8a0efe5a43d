"""Connections that failed and were not used again, or a run without any response."""

from __future__ import annotations

from wsgiload.audit.run import Run, alarm, kinds_of
from wsgiload.documents.audit import AuditAlarm
from wsgiload.findings.finding import Finding
from wsgiload.report.words import format_count, format_ratio, plural

FAILED_CONNECTIONS = Finding(
    name="failed-connections",
    examines="other tools' results: failed connections, compared with all connections",
    premise="No request got a response, or the tool did not reopen failed connections, so the "
    "load was lower than stated.",
    fix="check the server's log and backlog and the client's ports (`wsgiload doctor`), then "
    "repeat the run",
)


def failed_connections(run: Run) -> AuditAlarm | None:
    """All connections of the run failed, or some connections of a tool that does not reconnect."""
    figures = run.figures
    if figures.requests == 0 and run.failures:
        return _no_response(run)

    failed = figures.errors.get("connect", 0)
    if not failed or not figures.connections:
        return None
    if not run.tool.keeps_failed_connections:
        return None
    is_all = failed >= figures.connections
    message = (
        "all connections had failed before the end: the throughput includes time in which nothing "
        "was sent"
        if is_all
        else f"{plural(failed, 'connection')} failed and stayed unused: the load was lower than "
        "stated"
    )
    return alarm(
        FAILED_CONNECTIONS,
        f"{message} ({run.tool.name} never reconnects)",
        arithmetic=f"{format_count(failed)} failed / {format_count(figures.connections)} "
        f"connections = {format_ratio(failed / figures.connections)}",
        value=failed / figures.connections,
        limit=0,
    )


def _no_response(run: Run) -> AuditAlarm:
    return alarm(
        FAILED_CONNECTIONS,
        "no request got a response, so this run says nothing about the server",
        arithmetic=f"0 responses, {plural(run.failures, 'failure')} "
        f"({kinds_of(run.figures.errors)})",
        value=1.0,
        limit=0,
    )
