"""cheroot, CherryPy's server: one process with a fixed thread pool."""

from __future__ import annotations

from pathlib import Path

from wsgiload.catalogue.contract import LaunchContext, Server, Variant, option, runner

SOURCE = "https://github.com/cherrypy/cheroot/blob/main/cheroot/server.py"


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """Start a runner: cheroot's command line cannot raise the limit on idle connections."""
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
                "request_queue_size set by the profile (with the default, 5, the queue overflows "
                f"and clients retransmit; {SOURCE})",
                f"keep_alive_conn_limit = None (default 10 idle connections; {SOURCE})",
                f"timeout longer than the run (default 10 s; {SOURCE})",
                "HTTP/1.0 clients get keep-alive only with the exact spelling 'Keep-Alive'; "
                "no access log",
            ),
            stock_notes=(
                "10 threads, backlog 5, at most 10 idle connections, which are closed after 10 s "
                f"({SOURCE})",
            ),
            unix_socket=True,
            no_trusted_proxies="no setting for trusted proxies",
        ),
    ),
    default_variant="default",
    command=command,
)
