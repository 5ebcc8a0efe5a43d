"""gevent's own WSGI server, pywsgi: one process, one event loop, one greenlet per connection."""

from __future__ import annotations

from pathlib import Path

from wsgiload.catalogue.contract import LaunchContext, Server, Variant, option, runner

REFERENCE = "https://www.gevent.org/api/gevent.pywsgi.html"


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """Our runner: pywsgi has no command line."""
    return [
        *runner(context, Path(__file__), "run_gevent.py"),
        *("--host", context.host, "--port", str(context.port)),
        *option("--backlog", context.backlog),
        *context.when_tuned("--no-log"),
        context.app,
    ]


SERVER = Server(
    name="gevent",
    summary="gevent.pywsgi: single process, greenlets on one event loop",
    homepage="https://www.gevent.org/",
    source=Path(__file__),
    requirements=("gevent==26.9.0",),
    distribution="gevent",
    variants=(
        Variant(
            name="pywsgi",
            summary="one process, one greenlet per connection, unlimited",
            keepalive=True,
            uses_workers=False,
            uses_threads=False,
            notes=(
                f"log=None: by default every request is written to standard error ({REFERENCE})",
                f"backlog set by the profile (default 128; {REFERENCE})",
                "gevent.monkey.patch_all() before the app is imported: the app's sleeps and "
                "sockets yield",
                "idle connections are never closed; compute-bound code blocks the loop",
            ),
            stock_notes=(f"logs every request to standard error ({REFERENCE})",),
            framing="chunked",
            unix_socket=True,
            no_trusted_proxies="it has no setting for trusted proxies",
        ),
    ),
    default_variant="pywsgi",
    command=command,
    ignored_variables=("GEVENT_*", "GREENLET_*"),
)
