"""gevent.pywsgi, gevent's WSGI server: one process, one event loop, one greenlet per connection."""

from __future__ import annotations

from pathlib import Path

from wsgiload.catalogue.contract import LaunchContext, Server, Variant, option, runner

REFERENCE = "https://www.gevent.org/api/gevent.pywsgi.html"


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """Start a runner, because pywsgi has no command line."""
    return [
        *runner(context, Path(__file__), "run_gevent.py"),
        *("--host", context.host, "--port", str(context.port)),
        *option("--backlog", context.backlog),
        *context.when_tuned("--no-log", "--no-delay"),
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
            summary="one greenlet per connection, without a limit on connections",
            keepalive=True,
            uses_workers=False,
            uses_threads=False,
            notes=(
                f"log=None (default: every request is written to standard error; {REFERENCE})",
                f"backlog set by the profile (default 128; {REFERENCE})",
                "TCP_NODELAY on the listening socket: otherwise, Nagle's algorithm delays "
                "responses of several writes by 40 ms",
                "gevent.monkey.patch_all() before the app is imported: sleeps and socket calls of "
                "the app yield to the event loop",
                "idle connections are never closed; CPU-bound code blocks the event loop",
            ),
            stock_notes=(
                f"every request written to standard error, Nagle's algorithm on ({REFERENCE})",
            ),
            framing="chunked",
            unix_socket=True,
            no_trusted_proxies="no setting for trusted proxies",
        ),
    ),
    default_variant="pywsgi",
    command=command,
    ignored_variables=("GEVENT_*", "GREENLET_*"),
)
