"""wsgiref: the reference server of the standard library; the floor, not a contender."""

from __future__ import annotations

from pathlib import Path

from wsgiload.contract import LaunchContext, Server, Variant

SOURCE = "https://docs.python.org/3/library/wsgiref.html#module-wsgiref.simple_server"


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """Our runner: wsgiref's own command line serves only its demonstration app."""
    return [
        # -P: the runner's folder must not come first on sys.path.
        *(str(context.python), "-P", str(Path(__file__).parent / "runners" / "run_wsgiref.py")),
        *("--host", context.host, "--port", str(context.port)),
        *("--backlog", str(context.backlog)),
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
                f"log_message silenced: by default every request is written to standard error ({SOURCE})",
                "answers with HTTP/1.0 and closes; without Content-Length the body ends with the connection",
            ),
        ),
    ),
    default_variant="default",
    command=command,
)
