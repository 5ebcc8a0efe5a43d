"""cheroot: the server of CherryPy; one process with a fixed pool of threads."""

from __future__ import annotations

from pathlib import Path

from wsgiload.catalogue.contract import LaunchContext, Server, Variant, option, runner

SOURCE = "https://github.com/cherrypy/cheroot/blob/main/cheroot/server.py"


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """Our runner: cheroot's own command line cannot raise the limit of kept connections."""
    return [
        *runner(context, Path(__file__), "run_cheroot.py"),
        *("--host", context.host, "--port", str(context.port)),
        *option("--threads", context.threads),
        *option("--backlog", context.backlog),
        *option("--timeout", context.idle_timeout_s),
        context.app,
    ]


SERVER = Server(
    name="cheroot",
    summary="CherryPy's server: single process, pure Python, thread pool",
    homepage="https://cheroot.cherrypy.dev/",
    source=Path(__file__),
    requirements=("cheroot==11.1.2",),
    distribution="cheroot",
    variants=(
        Variant(
            name="default",
            summary="thread pool",
            keepalive=True,
            uses_workers=False,
            uses_threads=True,
            notes=(
                f"request_queue_size = backlog: the default 5 makes clients retransmit ({SOURCE})",
                f"keep_alive_conn_limit = None: by default only 10 connections are kept ({SOURCE})",
                f"timeout longer than the run (default 10 s; {SOURCE})",
                "HTTP/1.0 keep-alive only for the exact spelling 'Keep-Alive'; there is no "
                "access log",
            ),
            stock_notes=(f"10 threads, backlog 5, 10 connections kept, for 10 s each ({SOURCE})",),
            unix_socket=True,
            no_trusted_proxies="it has no setting for trusted proxies",
        ),
    ),
    default_variant="default",
    command=command,
)
