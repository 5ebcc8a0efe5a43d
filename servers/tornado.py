"""Tornado's HTTP server with WSGIContainer: WSGI on an asynchronous loop, which is not its native
way."""

from __future__ import annotations

from pathlib import Path

from wsgiload.catalogue.contract import LaunchContext, Server, Variant, option, runner

REFERENCE = "https://www.tornadoweb.org/en/stable/wsgi.html"


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """Our runner: tornado has no command line."""
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
    summary="asynchronous loop; the app runs in a thread pool beside it",
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
                "executor: by default the app blocks the loop, one request at a time "
                f"({REFERENCE})",
                "backlog set by the profile (default 128; "
                "https://www.tornadoweb.org/en/stable/netutil.html)",
                f"tornado.access to ERROR: every request is logged otherwise ({REFERENCE})",
                "xheaders: X-Forwarded-Proto sets the scheme, as in other servers (default off; "
                "https://www.tornadoweb.org/en/stable/httpserver.html)",
                "each worker listens on its own socket (SO_REUSEPORT); tornado's "
                "own fork leaves children",
                f"responses are buffered and get a Content-Length ({REFERENCE})",
            ),
            stock_notes=(
                f"one process, the app on the loop's own thread, backlog 128 ({REFERENCE})",
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
