"""wsgiref: the reference server of the standard library; the floor, not a contender."""

from __future__ import annotations

from pathlib import Path

from wsgiload.catalogue.contract import LaunchContext, Server, Variant, option, runner

SOURCE = "https://docs.python.org/3/library/wsgiref.html#module-wsgiref.simple_server"


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """Our runner: wsgiref's own command line serves only its demonstration app."""
    return [
        *runner(context, Path(__file__), "run_wsgiref.py"),
        *("--host", context.host, "--port", str(context.port)),
        *option("--backlog", context.backlog),
        *context.when_tuned("--no-log"),
        context.app,
    ]


SERVER = Server(
    name="wsgiref",
    summary="standard library, single thread, HTTP/1.0; for development",
    homepage=SOURCE,
    source=Path(__file__),
    requirements=(),
    distribution=None,  # its version is the interpreter's
    variants=(
        Variant(
            name="default",
            summary="one request at a time, one request per connection",
            keepalive=False,
            uses_workers=False,
            uses_threads=False,
            notes=(
                "request_queue_size = backlog: socketserver's default is 5 "
                "(https://docs.python.org/3/library/socketserver.html)",
                "log_message silenced: by default every request is written to standard error "
                f"({SOURCE})",
                "responds with HTTP/1.0 and closes; without Content-Length the body ends with "
                "the connection",
            ),
            stock_notes=("backlog 5, logs every request to standard error",),
            framing="close",
            no_trusted_proxies="it has no setting for trusted proxies",
        ),
    ),
    default_variant="default",
    command=command,
)
