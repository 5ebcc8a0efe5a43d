"""Circus with Chaussette: a supervisor that binds one socket and hands it to every process of a
backend."""

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
    "numprocesses set by the profile; one shared socket, whose backlog is set by the profile "
    f"(default 2048; {CIRCUS})",
    "chaussette's request log off; with some backends it writes one line per request "
    f"({CHAUSSETTE})",
    "circus endpoints are Unix sockets in the run directory, so several instances can run at once",
)
NO_PROXIES = "it has no setting for trusted proxies"
STOCK_NOTES = (f"one process, backlog 2048, chaussette's log on ({CIRCUS})",)


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """Our runner writes circus's configuration and becomes ``circusd``."""
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
        summary=f"chaussette's backend {backend}, processes on one inherited socket",
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
    summary="supervisor with Chaussette's backends; chaussette's last change was in 2017",
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
            "chaussette offers gevent only on Python 2; our runner registers the same class "
            f"and restores wsgi.errors, which newer gevent versions remove ({CHAUSSETTE})",
        ),
        replace(
            _variant(
                "waitress",
                True,
                "chunked",
                "waitress.serve on the inherited socket: chaussette's class fails with waitress 3 "
                f"('Invalid host/port specified'; {CHAUSSETTE}); its settings are those of "
                "waitress itself",
                uses_threads=True,
            ),
            no_trusted_proxies=None,
        ),
        replace(
            _variant(
                "meinheld",
                True,
                "chunked",
                f"keep-alive enabled (chaussette's default is off) ({CHAUSSETTE})",
                closes=True,
            ),
            head_limit="each header field is limited to 8 KiB, which cannot be changed",
        ),
        _variant("wsgiref", False, "close", "HTTP/1.0, one request per connection"),
        Variant(
            name="fastgevent",
            summary="chaussette's backend on gevent.wsgi",
            keepalive=True,
            uses_workers=True,
            uses_threads=False,
            notes=("https://www.gevent.org/changelog_1_3.html",),
            reason="gevent 1.3 removed gevent.wsgi, which it is based on",
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
