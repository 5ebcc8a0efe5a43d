"""pyruvate: a server in Rust with a pool of Python threads; it is measured without keep-alive."""

from __future__ import annotations

from pathlib import Path

from wsgiload.catalogue.contract import LaunchContext, Server, Variant, option, runner

REFERENCE = "https://gitlab.com/tschorr/pyruvate#parameters"


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """Our runner: pyruvate is started from Python or by PasteDeploy."""
    return [
        *runner(context, Path(__file__), "run_pyruvate.py"),
        *("--host", context.host, "--port", str(context.port)),
        *option("--threads", context.threads),
        *option("--backlog", context.backlog),
        context.app,
    ]


SERVER = Server(
    name="pyruvate",
    summary="HTTP in Rust on mio, the app in a pool of Python threads",
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
                f"workers (which are threads) set by the profile ({REFERENCE})",
                "max_reuse_count stays 0, which closes connections; with a higher value, the "
                "second request of a connection gets no response "
                f"({REFERENCE})",
                "our runner creates the socket, as a service manager would, with the profile's "
                f"backlog ({REFERENCE})",
            ),
            stock_notes=("the number of threads is mandatory and has no default: 4",),
            framing="close",
            no_trusted_proxies="it has no setting for trusted proxies",
            deviation="close() of the app's response was not called",
            extra=True,
        ),
    ),
    default_variant="default",
    command=command,
)
