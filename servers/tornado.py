"""Tornado's HTTP server with WSGIContainer: an adapter that runs WSGI apps on an event loop."""

from __future__ import annotations

from pathlib import Path

from wsgiload.catalogue.contract import LaunchContext, Server, Variant, option, runner

REFERENCE = "https://www.tornadoweb.org/en/stable/wsgi.html"


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """Start a runner, because Tornado has no command line."""
    return [
        *runner(context, Path(__file__), "prefork.py"),
        *option("--workers", context.workers),
        str(Path(__file__).parent / "runners" / "run_tornado.py"),
        *("--host", context.host, "--port", str(context.port)),
        *option("--threads", context.threads),
        *option("--backlog", context.backlog),
        *context.when_tuned("--no-log", "--trust-proxies"),
        context.app,
    ]


SERVER = Server(
    name="tornado",
    summary="event loop; the app runs in a thread pool",
    homepage="https://www.tornadoweb.org/",
    source=Path(__file__),
    requirements=("tornado==6.6.1",),
    distribution="tornado",
    variants=(
        Variant(
            name="default",
            summary="WSGIContainer",
            keepalive=True,
            uses_workers=True,
            uses_threads=True,
            notes=(
                "executor = a thread pool (default: the app runs in the event loop's thread, one "
                f"request at a time; {REFERENCE})",
                "backlog set by the profile (default 128; "
                "https://www.tornadoweb.org/en/stable/netutil.html)",
                f"logger tornado.access off: by default, every request is logged ({REFERENCE})",
                "xheaders: X-Forwarded-Proto sets the scheme, as in other servers (default off; "
                "https://www.tornadoweb.org/en/stable/httpserver.html)",
                "each worker listens on its own socket (SO_REUSEPORT): Tornado's fork_processes "
                "leaves child processes behind",
                f"responses are buffered and get a Content-Length ({REFERENCE})",
            ),
            stock_notes=(
                f"one process, the app in the event loop's thread, backlog 128 ({REFERENCE})",
            ),
            framing="content-length",
            unix_socket=True,
            helpers=1,
            extra=True,
        ),
    ),
    default_variant="default",
    command=command,
)
