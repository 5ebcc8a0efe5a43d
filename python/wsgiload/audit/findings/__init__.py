"""Possible problems of a result, grouped by what is wrong.

A finding is a function of one run. ``averaged_percentiles`` needs the parts of a file;
those that ``read.py`` calls itself need several runs.
"""

from __future__ import annotations

from collections.abc import Callable

from wsgiload.audit.findings.failures import (
    client_exhausted,
    errors_as_responses,
    failed_connections,
    failures_left_out,
    no_keepalive,
)
from wsgiload.audit.findings.sending import (
    closed_loop_stalls,
    littles_law,
    rate_not_reached,
    saturated_client,
)
from wsgiload.audit.findings.times import coarse_resolution, nagle_delay, too_few_requests
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
