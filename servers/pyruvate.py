"""pyruvate: a Rust server with a pool of Python threads, measured without keep-alive."""

from __future__ import annotations

from pathlib import Path

from wsgiload.catalogue.contract import LaunchContext, Server, Variant, option, runner

REFERENCE = "https://gitlab.com/tschorr/pyruvate#parameters"


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """Start a runner, because pyruvate can be started only from Python or by PasteDeploy."""
    return [
        *runner(context, Path(__file__), "run_pyruvate.py"),
        *("--host", context.host, "--port", str(context.port)),
        *option("--threads", context.threads),
        *option("--backlog", context.backlog),
        context.app,
    ]


SERVER = Server(
    name="pyruvate",
    summary="HTTP in Rust, based on mio; the app runs in a pool of Python threads",
    homepage="https://gitlab.com/tschorr/pyruvate",
    source=Path(__file__),
    requirements=("pyruvate==1.6.1",),
    distribution="pyruvate",
    variants=(
        Variant(
            name="default",
            summary="closes every connection",
            keepalive=False,
            uses_workers=False,
            uses_threads=True,
            notes=(
                f"workers, the number of threads, set by the profile ({REFERENCE})",
                "max_reuse_count 0 (the default) disables keep-alive: with higher values, the "
                f"second request on a connection gets no response ({REFERENCE})",
                "the runner creates the socket, like systemd, with the backlog set by the profile "
                f"({REFERENCE})",
            ),
            stock_notes=("4 threads: the number of threads is required and has no default",),
            framing="close",
            no_trusted_proxies="no setting for trusted proxies",
            deviation="close() of the app's response was not called",
            extra=True,
        ),
    ),
    default_variant="default",
    command=command,
)
