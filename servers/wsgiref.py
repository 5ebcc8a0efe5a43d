"""wsgiref: the reference server of the standard library; a baseline."""

from __future__ import annotations

from pathlib import Path

from wsgiload.catalogue.contract import LaunchContext, Server, Variant, option, runner

SOURCE = "https://docs.python.org/3/library/wsgiref.html#module-wsgiref.simple_server"


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """Start a runner: wsgiref's command line serves only its demo app."""
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
    distribution=None,  # its version is that of the interpreter
    variants=(
        Variant(
            name="default",
            summary="one request at a time, one request per connection",
            keepalive=False,
            uses_workers=False,
            uses_threads=False,
            notes=(
                "request_queue_size set by the profile (default 5; "
                "https://docs.python.org/3/library/socketserver.html)",
                "log_message does nothing: by default, every request is written to standard error "
                f"({SOURCE})",
                "HTTP/1.0 without keep-alive; a body without Content-Length is close-delimited",
            ),
            stock_notes=("backlog 5, every request written to standard error",),
            framing="close",
            no_trusted_proxies="no setting for trusted proxies",
        ),
    ),
    default_variant="default",
    command=command,
)
