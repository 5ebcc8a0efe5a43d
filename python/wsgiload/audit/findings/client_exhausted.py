"""The client ran out of ports or file descriptors."""

from __future__ import annotations

from wsgiload.audit.run import Run, alarm
from wsgiload.documents.audit import AuditAlarm
from wsgiload.findings.alarms import NETWORK_RESOURCES
from wsgiload.report.words import format_count, format_ratio


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
