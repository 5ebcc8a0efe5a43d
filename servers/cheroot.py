"""cheroot: the server of CherryPy; one process with a fixed pool of threads."""

from __future__ import annotations

from pathlib import Path

from wsgiload.contract import LaunchContext, Server, Variant

SOURCE = "https://github.com/cherrypy/cheroot/blob/main/cheroot/server.py"


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """Our runner: cheroot's own command line cannot raise the limit of kept connections."""
    return [
        # -P: the runner's folder must not come first on sys.path.
        *(str(context.python), "-P", str(Path(__file__).parent / "runners" / "run_cheroot.py")),
        *("--host", context.host, "--port", str(context.port)),
        *("--threads", str(context.threads)),
        *("--backlog", str(context.backlog)),
        *("--timeout", str(context.idle_timeout_s)),
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
                "HTTP/1.0 keep-alive only for the exact spelling 'Keep-Alive'; there is no access log",
            ),
        ),
    ),
    default_variant="default",
    command=command,
)
