"""Which WSGI server, with which settings, serves your app at the lowest tail latency inside your
limits.

    import wsgiload

    report = wsgiload.load("http://127.0.0.1:8000/", rate=2000, duration=10)
    report.response_time.quantile(0.99)  # nanoseconds, from the intended send

    result = wsgiload.sweep(app="myapp:app", rates=[1000, 2000, 3000], servers=["gunicorn",
    "waitress"]) result.run_dir, result.summary

Errors form one tree below ``WsgiloadError``; ``load`` and ``sweep`` block, and Ctrl-C ends them.
"""

from __future__ import annotations

from wsgiload._loadgen import Histogram
from wsgiload.api import resume, sweep
from wsgiload.documents.load_report import Reason, Verdict
from wsgiload.errors import (
    AppImportError,
    LimitsError,
    LoadError,
    ProvisionError,
    ServerError,
    UsageError,
    WsgiloadError,
)
from wsgiload.loads.handle import Handle, Report, aload, load, start
from wsgiload.sweeps.sweep import SweepResult

__all__ = [
    "AppImportError",
    "Handle",
    "Histogram",
    "LimitsError",
    "LoadError",
    "ProvisionError",
    "Reason",
    "Report",
    "ServerError",
    "SweepResult",
    "UsageError",
    "Verdict",
    "WsgiloadError",
    "aload",
    "load",
    "resume",
    "start",
    "sweep",
]
