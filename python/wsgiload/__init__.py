"""Find the WSGI server and settings with the lowest tail latency for your app within your CPU and
memory limits.

    import wsgiload

    report = wsgiload.load("http://127.0.0.1:8000/", rate=2000, duration=10)
    report.response_time.quantile(0.99)  # p99 of correct responses, in nanoseconds
    report.document.outcomes.ok  # the whole report, typed

    options = wsgiload.LoadOptions(warmup=2, deadline=1)
    wsgiload.load(url, schedule=wsgiload.Ramp(100, 2000), options=options)

    result = wsgiload.sweep(
        app="myapp:app", rates=[1000, 2000, 3000], servers=["gunicorn", "waitress"]
    )
    result.run_dir, result.summary

Settings that are not keyword arguments are fields of options objects, named like the flags of the
command line. All errors derive from ``WsgiloadError``. ``load`` and ``sweep`` block; Ctrl-C stops
them.
"""

# Nothing slow is imported here: an interrupt before the command line can handle it is a traceback.
from wsgiload.first_use import IMPORTING

TYPE_CHECKING = False  # typing is slow to import

if TYPE_CHECKING:
    from wsgiload._loadgen import Histogram
    from wsgiload.api import aload, load, resume, start, sweep
    from wsgiload.documents.cell_result import CellResult
    from wsgiload.documents.load_plan import SessionPlan, WeightedRequest
    from wsgiload.documents.load_report import LoadReport, Reason, Verdict
    from wsgiload.documents.summary import Summary
    from wsgiload.errors import (
        AppImportError,
        LimitsError,
        LoadError,
        ProvisionError,
        ServerError,
        UsageError,
        WsgiloadError,
    )
    from wsgiload.experiment.plan import Cell, ResourceLimits
    from wsgiload.experiment.public_options import (
        ServerCommand,
        ServerOptions,
        SupportingService,
        SweepOptions,
    )
    from wsgiload.loads.handle import Handle, Report
    from wsgiload.loads.public_options import LoadOptions, RequestOptions, TransportOptions
    from wsgiload.loads.schedule import Ramp, Replay, Steps
    from wsgiload.sweeps.sweep import SweepEvents, SweepResult

# The module of each public name. Names are imported on first access, which keeps `import wsgiload`
# and `wsgiload --help` fast.
_MODULES = {
    "AppImportError": "wsgiload.errors",
    "Cell": "wsgiload.experiment.plan",
    "CellResult": "wsgiload.documents.cell_result",
    "Handle": "wsgiload.loads.handle",
    "Histogram": "wsgiload._loadgen",
    "LimitsError": "wsgiload.errors",
    "LoadError": "wsgiload.errors",
    "LoadOptions": "wsgiload.loads.public_options",
    "LoadReport": "wsgiload.documents.load_report",
    "ProvisionError": "wsgiload.errors",
    "Ramp": "wsgiload.loads.schedule",
    "Reason": "wsgiload.documents.load_report",
    "Replay": "wsgiload.loads.schedule",
    "Report": "wsgiload.loads.handle",
    "RequestOptions": "wsgiload.loads.public_options",
    "ResourceLimits": "wsgiload.experiment.plan",
    "ServerCommand": "wsgiload.experiment.public_options",
    "ServerError": "wsgiload.errors",
    "ServerOptions": "wsgiload.experiment.public_options",
    "SessionPlan": "wsgiload.documents.load_plan",
    "Steps": "wsgiload.loads.schedule",
    "Summary": "wsgiload.documents.summary",
    "SupportingService": "wsgiload.experiment.public_options",
    "SweepEvents": "wsgiload.sweeps.sweep",
    "SweepOptions": "wsgiload.experiment.public_options",
    "SweepResult": "wsgiload.sweeps.sweep",
    "TransportOptions": "wsgiload.loads.public_options",
    "UsageError": "wsgiload.errors",
    "Verdict": "wsgiload.documents.load_report",
    "WeightedRequest": "wsgiload.documents.load_plan",
    "WsgiloadError": "wsgiload.errors",
    "aload": "wsgiload.api",
    "load": "wsgiload.api",
    "resume": "wsgiload.api",
    "start": "wsgiload.api",
    "sweep": "wsgiload.api",
}

__all__ = [
    "AppImportError",
    "Cell",
    "CellResult",
    "Handle",
    "Histogram",
    "LimitsError",
    "LoadError",
    "LoadOptions",
    "LoadReport",
    "ProvisionError",
    "Ramp",
    "Reason",
    "Replay",
    "Report",
    "RequestOptions",
    "ResourceLimits",
    "ServerCommand",
    "ServerError",
    "ServerOptions",
    "SessionPlan",
    "Steps",
    "Summary",
    "SupportingService",
    "SweepEvents",
    "SweepOptions",
    "SweepResult",
    "TransportOptions",
    "UsageError",
    "Verdict",
    "WeightedRequest",
    "WsgiloadError",
    "aload",
    "load",
    "resume",
    "start",
    "sweep",
]


def __getattr__(name: str) -> object:
    """Import a public name on first access (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    with IMPORTING:
        value: object = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
