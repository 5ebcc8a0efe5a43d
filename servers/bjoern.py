"""bjoern: a small server in C on libev; one thread, one request at a time per process."""

from __future__ import annotations

from pathlib import Path

from wsgiload.catalogue.contract import Dependency, LaunchContext, Server, Variant, option, runner

REFERENCE = "https://github.com/jonashaag/bjoern#usage"

NO_PROXIES = "it has no setting for trusted proxies"

NOTES = (
    f"listen_backlog set by the profile (default 1024; {REFERENCE})",
    "no TCP_NODELAY: a response without Content-Length can be delayed by 40 ms (delayed ACK) "
    "(https://github.com/jonashaag/bjoern/blob/master/bjoern/server.c)",
    "a blocking app blocks the process; there is no access log and no timeout; pipelined "
    "requests hang",
)


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """Our runner: bjoern has no command line."""
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
    summary="HTTP in C on libev; last change in 2022",
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
                f"same as tuned: backlog 1024 and keep-alive are its defaults ({REFERENCE})",
            ),
            unix_socket=True,
            no_trusted_proxies=NO_PROXIES,
        ),
        Variant(
            name="processes",
            summary="a process per worker, each with its own socket",
            keepalive=True,
            uses_workers=True,
            uses_threads=False,
            notes=(
                *NOTES,
                "reuse_port: the kernel spreads connections over the processes' sockets "
                f"({REFERENCE})",
            ),
            stock_notes=(f"one process, backlog 1024 ({REFERENCE})",),
            unix_socket=True,
            no_trusted_proxies=NO_PROXIES,
            helpers=1,
        ),
    ),
    default_variant="default",
    command=command,
    needs_compiler=True,
    needs=(Dependency("gcc", program="gcc"), Dependency("libev-dev", header="ev.h")),
)
