"""As many requests as connections: the server closes each connection, or sends no further
response on it."""

from __future__ import annotations

from wsgiload.audit.run import Run, alarm
from wsgiload.documents.audit import AuditAlarm
from wsgiload.findings.alarms import NO_REUSE
from wsgiload.report.words import format_count, format_duration_ns

# Responses on reused connections, as a share of all responses.
MIN_REUSED_SHARE = 0.05
MIN_REQUESTS = 20
# Each connection had time for at least this many responses.
MIN_POSSIBLE_RESPONSES = 5


def no_keepalive(run: Run) -> AuditAlarm | None:
    """Connections carried one request each although the tool requested keep-alive."""
    figures = run.figures
    if not figures.keepalive or not figures.requests or figures.requests < MIN_REQUESTS:
        return None
    if figures.reused is not None:
        return _no_reuse(run, figures.requests, figures.reused)
    return _unannounced_close(run) or _idle_connections(run)


def _no_reuse(run: Run, requests: int, reused: int) -> AuditAlarm | None:
    if reused > MIN_REUSED_SHARE * requests:
        return None
    return alarm(
        NO_REUSE,
        "the server closes the connection after each response although keep-alive was requested: "
        "the times include connection setup",
        arithmetic=f"{format_count(reused)} of {format_count(requests)} responses "
        "on a reused connection",
        value=1 - reused / requests,
        limit=1 - MIN_REUSED_SHARE,
    )


def _unannounced_close(run: Run) -> AuditAlarm | None:
    """The server closes connections without announcing it, so each request is followed by a read
    error."""
    requests, read_errors = run.figures.requests or 0, run.figures.errors.get("read", 0)
    if read_errors < (1 - MIN_REUSED_SHARE) * requests:
        return None
    return alarm(
        NO_REUSE,
        "the server closes the connection after each response without announcing it: "
        f"{run.tool_name} counts each as a read error and reconnects",
        arithmetic=f"{format_count(read_errors)} read errors / {format_count(requests)} requests = "
        f"{read_errors / requests:.2f}",
        value=read_errors / requests,
        limit=1 - MIN_REUSED_SHARE,
    )


def _idle_connections(run: Run) -> AuditAlarm | None:
    """Each connection carried one request and then nothing more."""
    figures = run.figures
    if not figures.connections or figures.duration_ns is None or not figures.max_ns:
        return None
    alive = figures.connections - figures.errors.get("connect", 0) + figures.errors.get("read", 0)
    requests, possible = figures.requests or 0, figures.duration_ns / figures.max_ns
    if requests > (1 + MIN_REUSED_SHARE) * alive or possible < MIN_POSSIBLE_RESPONSES:
        return None
    return alarm(
        NO_REUSE,
        "each connection carried a single request and was idle for the rest of the run: this "
        "throughput is the number of connections divided by the duration, not the server's speed",
        arithmetic=f"{format_count(requests)} requests / {format_count(alive)} connections = "
        f"{requests / alive:.2f}, in {format_duration_ns(figures.duration_ns)} with responses "
        f"within {format_duration_ns(figures.max_ns)}",
        value=requests / alive,
        limit=1 + MIN_REUSED_SHARE,
    )
