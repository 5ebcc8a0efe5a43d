"""Requests that failed, and connections that carried only one request."""

from __future__ import annotations

from wsgiload.audit.run import Run, alarm, kinds_of
from wsgiload.documents.audit import AuditAlarm
from wsgiload.findings.alarms import NETWORK_RESOURCES, NO_REUSE
from wsgiload.findings.finding import Finding, percent
from wsgiload.report.words import format_count, format_duration_ns, format_ratio, plural

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


def client_exhausted(run: Run) -> AuditAlarm | None:
    """Requests that failed in the client's kernel."""
    failed = run.figures.errors.get("client", 0)
    if not failed:
        return None
    whole = (run.figures.requests or 0) + run.failures
    return alarm(
        NETWORK_RESOURCES,
        f"{format_count(failed)} requests failed in the client, which ran out of file descriptors "
        "or ports: the figures describe the client's limit",
        arithmetic=f"{format_count(failed)} client failures / {format_count(whole)} requests = "
        f"{format_ratio(failed / whole)} (none allowed)",
        fix="raise `ulimit -n`, keep connections open, or use several source addresses, then "
        "repeat the run",
        value=failed,
        limit=0,
    )


ERRORS_AS_RESPONSES = Finding(
    name="errors-as-responses",
    examines="other tools' results: failed requests that the tool counts as responses",
    premise=f"More than {percent(MAX_SHARE)} of the requests failed. Errors are often faster than "
    "correct responses, so throughput and times look better than they are.",
    fix="compare goodput and the times of correct responses: `wsgiload load` counts a failed "
    "request as infinitely slow",
)


def errors_as_responses(run: Run) -> AuditAlarm | None:
    """Errors whose times count like those of correct responses."""
    figures, tool = run.figures, run.tool
    timed = figures.requests if figures.timed_requests is None else figures.timed_requests
    if not timed or not figures.requests:
        return None
    counted = {kind: n for kind, n in figures.errors.items() if kind in tool.timed_errors}
    failed = sum(counted.values())
    if failed <= MAX_SHARE * timed:
        return None

    is_length = set(counted) == {"body"} and tool.name == "ab"
    hint = "; if only the length varies, which ab counts as a failure, add -l" if is_length else ""
    return alarm(
        ERRORS_AS_RESPONSES,
        f"{tool.name} counts {format_count(failed)} failed requests as responses: errors are "
        "often faster, so throughput and times look better than they are",
        arithmetic=f"{format_count(failed)} failed ({kinds_of(counted)}) / "
        f"{format_count(timed)} requests = {format_ratio(failed / timed)} "
        f"(at most {format_ratio(MAX_SHARE)})",
        fix=f"{ERRORS_AS_RESPONSES.fix}{hint}",
        value=failed / timed,
        limit=MAX_SHARE,
    )
