"""bjoern: a small C server based on libev; each process handles one request at a time."""

from __future__ import annotations

from pathlib import Path

from wsgiload.catalogue.contract import Dependency, LaunchContext, Server, Variant, option, runner

REFERENCE = "https://github.com/jonashaag/bjoern#usage"

NO_PROXIES = "no setting for trusted proxies"
DELAYS = "no setting for TCP_NODELAY"

NOTES = (
    f"listen_backlog set by the profile (default 1,024; {REFERENCE})",
    "no TCP_NODELAY: a response without Content-Length can be delayed by 40 ms (delayed ACK) "
    "(https://github.com/jonashaag/bjoern/blob/master/bjoern/server.c)",
    "a blocking app blocks its whole process; no access log, no timeouts; pipelined requests get "
    "no response",
)


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """Start a runner, because bjoern has no command line."""
    return [
        *runner(context, Path(__file__), "prefork.py"),
        *(option("--workers", context.workers) if variant.uses_workers else ()),
        str(Path(__file__).parent / "runners" / "run_bjoern.py"),
        *("--host", context.host, "--port", str(context.port)),
        *option("--backlog", context.backlog),
        context.app,
    ]


SERVER = Server(
    name="bjoern",
    summary="HTTP in C, based on libev; last change in 2022",
    homepage="https://github.com/jonashaag/bjoern",
    source=Path(__file__),
    requirements=("bjoern==3.2.2",),
    distribution="bjoern",
    variants=(
        Variant(
            name="default",
            summary="one process, one thread",
            keepalive=True,
            uses_workers=False,
            uses_threads=False,
            notes=NOTES,
            stock_notes=(
                f"as in tuned: backlog 1,024 and keep-alive are the defaults ({REFERENCE})",
            ),
            unix_socket=True,
            no_trusted_proxies=NO_PROXIES,
            delays_writes=DELAYS,
        ),
        Variant(
            name="processes",
            summary="one process per worker, each with its own socket",
            keepalive=True,
            uses_workers=True,
            uses_threads=False,
            notes=(
                *NOTES,
                "reuse_port: the kernel distributes connections over the sockets of the processes "
                f"({REFERENCE})",
            ),
            stock_notes=(f"one process, backlog 1,024 ({REFERENCE})",),
            unix_socket=True,
            no_trusted_proxies=NO_PROXIES,
            delays_writes=DELAYS,
            helpers=1,
        ),
    ),
    default_variant="default",
    command=command,
    needs_compiler=True,
    needs=(Dependency("gcc", program="gcc"), Dependency("libev-dev", header="ev.h")),
)
