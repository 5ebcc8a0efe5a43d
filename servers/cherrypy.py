"""CherryPy: serves a WSGI app with cheroot, managed by CherryPy's engine."""

from __future__ import annotations

from pathlib import Path

from wsgiload.catalogue.contract import LaunchContext, Server, Variant, option, runner

REFERENCE = "https://docs.cherrypy.dev/en/latest/pkg/cherrypy._cpserver.html"


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """Start a runner, because ``cherryd`` serves only CherryPy applications."""
    return [
        *runner(context, Path(__file__), "run_cherrypy.py"),
        *("--host", context.host, "--port", str(context.port)),
        *option("--threads", context.threads),
        *option("--backlog", context.backlog),
        *option("--timeout", context.idle_timeout_s),
        context.app,
    ]


SERVER = Server(
    name="cherrypy",
    summary="CherryPy's engine with cheroot: single process, thread pool",
    homepage="https://cherrypy.dev/",
    source=Path(__file__),
    requirements=("cherrypy==18.10.0", "cheroot==11.1.2"),
    distribution="cherrypy",
    variants=(
        Variant(
            name="default",
            summary="the app mounted in CherryPy's tree",
            keepalive=True,
            uses_workers=False,
            uses_threads=True,
            notes=(
                f"server.thread_pool set by the profile (default 10; {REFERENCE})",
                "server.socket_queue_size set by the profile (with the default, 5, the queue "
                f"overflows and clients retransmit; {REFERENCE})",
                f"server.socket_timeout longer than the run (default 10 s; {REFERENCE})",
                "keep_alive_conn_limit = None (default 10 idle connections; "
                "https://github.com/cherrypy/cheroot/blob/main/cheroot/server.py)",
                f"environment = production: no autoreload, no log on the terminal ({REFERENCE})",
            ),
            stock_notes=(
                f"10 threads, backlog 5, at most 10 idle connections, autoreload ({REFERENCE})",
            ),
            unix_socket=True,
            no_trusted_proxies="the proxy tool supports only CherryPy applications",
            extra=True,
        ),
    ),
    default_variant="default",
    takes_arguments=True,
    command=command,
    stop_timeout_s=15.0,
)
