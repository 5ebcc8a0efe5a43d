"""Possible problems of a result, one module for each finding.

A finding is a function of one run. ``averaged_percentiles`` needs the parts of a file;
those that ``audit.py`` calls itself need several runs.
"""

from __future__ import annotations

from collections.abc import Callable

from wsgiload.audit.findings.client_exhausted import client_exhausted
from wsgiload.audit.findings.closed_loop_stalls import closed_loop_stalls
from wsgiload.audit.findings.coarse_resolution import coarse_resolution
from wsgiload.audit.findings.errors_as_responses import errors_as_responses
from wsgiload.audit.findings.failed_connections import failed_connections
from wsgiload.audit.findings.failures_left_out import failures_left_out
from wsgiload.audit.findings.littles_law import littles_law
from wsgiload.audit.findings.nagle_delay import nagle_delay
from wsgiload.audit.findings.no_keepalive import no_keepalive
from wsgiload.audit.findings.rate_not_reached import rate_not_reached
from wsgiload.audit.findings.saturated_client import saturated_client
from wsgiload.audit.findings.too_few_requests import too_few_requests
from wsgiload.audit.run import Run
from wsgiload.documents.audit import AuditAlarm

Finding = Callable[[Run], AuditAlarm | None]

# In the order of the report: findings that invalidate a run come first.
FINDINGS: tuple[Finding, ...] = (
    failed_connections,
    client_exhausted,
    saturated_client,
    littles_law,
    no_keepalive,
    rate_not_reached,
    errors_as_responses,
    failures_left_out,
    closed_loop_stalls,
    nagle_delay,
    too_few_requests,
    coarse_resolution,
)
