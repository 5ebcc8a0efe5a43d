"""FastPySGI, the maintained fork of FastWSGI: HTTP in C, based on libuv; one thread per process."""

from __future__ import annotations

from pathlib import Path

from wsgiload.catalogue.contract import LaunchContext, Server, Variant, option, runner

REFERENCE = "https://github.com/remittor/fastpysgi"


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """Start a runner: the command line cannot set the backlog or TCP_NODELAY."""
    return [
        *runner(context, Path(__file__), "prefork.py"),
        *option("--workers", context.workers),
        str(Path(__file__).parent / "runners" / "run_fastwsgi.py"),
        *("--host", context.host, "--port", str(context.port)),
        *option("--backlog", context.backlog),
        *context.when_tuned("--no-delay"),
        context.app,
    ]


SERVER = Server(
    name="fastwsgi",
    summary="HTTP in C, based on libuv: FastPySGI, the maintained fork of FastWSGI",
    homepage=REFERENCE,
    source=Path(__file__),
    requirements=("fastpysgi==0.6",),
    distribution="fastpysgi",
    variants=(
        Variant(
            name="default",
            summary="one thread per process",
            keepalive=True,
            uses_workers=True,
            uses_threads=False,
            notes=(
                f"server.backlog set by the profile (default 2,048; {REFERENCE})",
                "server.tcp_nodelay = 1: otherwise, Nagle's algorithm delays small writes "
                f"({REFERENCE})",
                "each worker listens on its own socket (SO_REUSEPORT); no access log",
                f"responses are buffered and get a Content-Length ({REFERENCE})",
            ),
            stock_notes=(f"one process, backlog 2,048, Nagle's algorithm on ({REFERENCE})",),
            framing="content-length",
            no_trusted_proxies="no setting for trusted proxies",
            helpers=1,
            extra=True,
        ),
    ),
    default_variant="default",
    command=command,
)
