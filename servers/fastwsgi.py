"""FastPySGI, the maintained fork of FastWSGI: HTTP in C on libuv; one thread per process."""

from __future__ import annotations

from pathlib import Path

from wsgiload.catalogue.contract import LaunchContext, Server, Variant, option, runner

REFERENCE = "https://github.com/remittor/fastpysgi"


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """Our runner: its command line has neither backlog nor Nagle's algorithm."""
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
    summary="HTTP in C on libuv: fastpysgi, the maintained fork of fastwsgi",
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
                f"server.backlog set by the profile (default 2048; {REFERENCE})",
                f"server.tcp_nodelay = 1: with Nagle's algorithm small writes wait ({REFERENCE})",
                "each worker listens on its own socket (SO_REUSEPORT); there is no access log",
                f"responses are buffered and get a Content-Length ({REFERENCE})",
            ),
            stock_notes=(f"one process, backlog 2048, Nagle's algorithm on ({REFERENCE})",),
            framing="content-length",
            no_trusted_proxies="it has no setting for trusted proxies",
            helpers=1,
            extra=True,
        ),
    ),
    default_variant="default",
    command=command,
)
