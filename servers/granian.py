"""granian: a server in Rust that runs the app in Python threads; processes below one main
process."""

from __future__ import annotations

from pathlib import Path

from wsgiload.catalogue.contract import LaunchContext, Server, Variant, option

REFERENCE = "https://github.com/emmett-framework/granian#options"


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """``python -m granian``."""
    return [
        *(str(context.python), "-m", "granian", "--interface", "wsgi"),
        *("--host", context.host, "--port", str(context.port)),
        *option("--workers", context.workers),
        *option("--blocking-threads", context.threads),
        *option("--backlog", context.backlog),
        # One above, for the prober: connections beyond it are not accepted.
        *option(
            "--backpressure",
            None if context.max_connections is None else context.max_connections + 1,
        ),
        *context.when_tuned("--http", "1", "--no-ws", "--log-level", "warning", "--no-access-log"),
        *context.when_tuned("--http1-header-read-timeout", 60_000),
        context.app,
    ]


SERVER = Server(
    name="granian",
    summary="HTTP in Rust, the app in a pool of Python threads per process",
    homepage="https://github.com/emmett-framework/granian",
    source=Path(__file__),
    requirements=("granian==2.8.7",),
    distribution="granian",
    variants=(
        Variant(
            name="default",
            summary="WSGI, HTTP/1.1 only",
            keepalive=True,
            uses_workers=True,
            uses_threads=True,
            notes=(
                "--blocking-threads set by the profile: by default half the backpressure "
                f"({REFERENCE})",
                "--backpressure above the load: it limits connections, by default backlog / "
                f"workers ({REFERENCE})",
                f"--http 1 --no-ws: no detection of protocols that are not measured ({REFERENCE})",
                f"the access log is off by default; --log-level warning ({REFERENCE})",
                "its WSGI loop also closes a connection whose next request does not come "
                "within 60 s, the maximum of "
                f"--http1-header-read-timeout ({REFERENCE})",
            ),
            stock_notes=(
                "one process, threads as needed up to 512, backlog and backpressure 1024 "
                f"({REFERENCE})",
            ),
            unix_socket=True,
            helpers=1,
            no_trusted_proxies="it trusts proxies only through a wrapper that the app must import "
            "(granian.utils.proxies)",
        ),
    ),
    default_variant="default",
    command=command,
    takes_arguments=True,
    ignored_variables=("GRANIAN_*",),
)
