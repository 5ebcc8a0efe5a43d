"""granian: a server in Rust that runs WSGI apps in Python threads and ASGI apps in an event loop;
processes below one main process."""

from __future__ import annotations

from pathlib import Path

from wsgiload.catalogue.contract import LaunchContext, Server, Variant, option

REFERENCE = "https://github.com/emmett-framework/granian#options"
NO_TRUSTED_PROXIES = (
    "it trusts proxies only through a wrapper that the app must import (granian.utils.proxies)"
)


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """``python -m granian``."""
    return [
        *(str(context.python), "-m", "granian", "--interface", variant.interface),
        *("--host", context.host, "--port", str(context.port)),
        *option("--workers", context.workers),
        *_threads(variant, context),
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


def _threads(variant: Variant, context: LaunchContext) -> list[str]:
    """Of an ASGI app, which runs in one event loop, only the kind of that."""
    if variant.interface == "asgi":
        return context.when_tuned("--loop", "uvloop")
    # uvloop is installed for ASGI apps only.
    return [*option("--blocking-threads", context.threads), "--loop", "asyncio"]


SERVER = Server(
    name="granian",
    summary="HTTP in Rust, the app in a pool of Python threads or an event loop per process",
    homepage="https://github.com/emmett-framework/granian",
    source=Path(__file__),
    requirements=("granian==2.8.7", "uvloop==0.23.0"),
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
            no_trusted_proxies=NO_TRUSTED_PROXIES,
        ),
        Variant(
            name="asgi",
            summary="ASGI on uvloop, HTTP/1.1 only",
            keepalive=True,
            uses_workers=True,
            uses_threads=False,
            notes=(
                f"--loop uvloop: the same event loop as the other ASGI servers ({REFERENCE})",
                "--backpressure above the load: it limits connections, by default backlog / "
                f"workers ({REFERENCE})",
                f"--http 1 --no-ws: no detection of protocols that are not measured ({REFERENCE})",
                f"the access log is off by default; --log-level warning ({REFERENCE})",
                "it closes a connection whose next request does not come within 60 s, the maximum "
                f"of --http1-header-read-timeout ({REFERENCE})",
            ),
            stock_notes=(
                "one process, the event loop that is installed (uvloop), backlog and backpressure "
                f"1024 ({REFERENCE})",
            ),
            unix_socket=True,
            helpers=1,
            no_trusted_proxies=NO_TRUSTED_PROXIES,
            deviation="client is not (str, int), server is not (str, int)",
            interface="asgi",
        ),
    ),
    default_variant="default",
    command=command,
    takes_arguments=True,
    ignored_variables=("GRANIAN_*",),
)
