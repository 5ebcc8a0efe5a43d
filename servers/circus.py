"""Circus with Chaussette: a supervisor whose worker processes share one listening socket."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from wsgiload.catalogue.contract import (
    Dependency,
    Framing,
    LaunchContext,
    Server,
    Variant,
    option,
    runner,
)

CIRCUS = "https://circus.readthedocs.io/en/latest/for-ops/sockets/"
CHAUSSETTE = "https://chaussette.readthedocs.io/"

NOTES = (
    "numprocesses and the backlog of the shared socket set by the profile (default backlog "
    f"2,048; {CIRCUS})",
    "TCP_NODELAY on the shared socket: otherwise, Nagle's algorithm delays responses of several "
    "writes by 40 ms",
    f"chaussette's log off: with some backends, every request is logged ({CHAUSSETTE})",
    "circus's endpoints are Unix sockets in the run directory, so several instances can run at the "
    "same time",
)
NO_PROXIES = "no setting for trusted proxies"
STOCK_NOTES = (f"one process, backlog 2,048, chaussette's log on ({CIRCUS})",)


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """Start a runner, which writes circus's configuration and executes ``circusd``."""
    return [
        *runner(context, Path(__file__), "run_circus.py"),
        *(
            "--host",
            context.host,
            "--port",
            str(context.port),
            "--folder",
            str(context.scratch_dir),
        ),
        *("--backend", variant.name),
        *option("--workers", context.workers),
        *(option("--threads", context.threads) if variant.uses_threads else ()),
        *option("--backlog", context.backlog),
        *option("--connections", context.max_connections if variant.name == "waitress" else None),
        *option("--keepalive", context.idle_timeout_s),
        context.app,
    ]


def _variant(
    backend: str,
    keepalive: bool,
    framing: Framing,
    note: str,
    *,
    uses_threads: bool = False,
    closes: bool = False,
) -> Variant:
    return Variant(
        name=backend,
        summary=f"chaussette's backend {backend}, processes that share one socket",
        keepalive=keepalive,
        uses_workers=True,
        uses_threads=uses_threads,
        notes=(*NOTES, note),
        stock_keepalive=False if closes else None,
        stock_notes=STOCK_NOTES,
        framing=framing,
        helpers=1,
        no_trusted_proxies=NO_PROXIES,
    )


SERVER = Server(
    name="circus",
    summary="supervisor with Chaussette's backends; Chaussette's last change was in 2017",
    homepage="https://circus.readthedocs.io/",
    source=Path(__file__),
    requirements=(
        "circus==0.19.0",
        "chaussette==1.3.0",
        "waitress==3.0.2",
        "gevent==26.9.0",
        "meinheld==1.0.2",
        "greenlet==3.5.6",
    ),
    overrides=("greenlet==3.5.6",),
    distribution="circus",
    variants=(
        _variant(
            "gevent",
            True,
            "chunked",
            "chaussette offers gevent only on Python 2; the runner registers the same class "
            f"and restores wsgi.errors, which newer gevent versions remove ({CHAUSSETTE})",
        ),
        replace(
            _variant(
                "waitress",
                True,
                "chunked",
                "the runner calls waitress.serve, with the settings of the server waitress: "
                "chaussette's class fails with waitress 3 "
                f"('Invalid host/port specified'; {CHAUSSETTE})",
                uses_threads=True,
            ),
            no_trusted_proxies=None,
        ),
        replace(
            _variant(
                "meinheld",
                True,
                "chunked",
                f"keep-alive enabled (disabled by default; {CHAUSSETTE})",
                closes=True,
            ),
            head_limit="each header field is limited to 8 KiB, which cannot be changed",
        ),
        _variant("wsgiref", False, "close", "HTTP/1.0, one request per connection"),
        Variant(
            name="fastgevent",
            summary="chaussette's backend fastgevent",
            keepalive=True,
            uses_workers=True,
            uses_threads=False,
            notes=("https://www.gevent.org/changelog_1_3.html",),
            reason="gevent 1.3 removed gevent.wsgi, which this Chaussette backend uses",
        ),
    ),
    default_variant="gevent",
    command=command,
    ignored_variables=("CIRCUS*", "GEVENT_*", "GREENLET_*"),
    needs_compiler=True,
    needs=(Dependency("gcc", program="gcc"),),
    python_max=(3, 12),
    legacy=True,
)
