"""granian: a Rust server that runs WSGI apps in Python threads and ASGI apps in an event loop; one
main process starts the workers."""

from __future__ import annotations

from pathlib import Path

from wsgiload.catalogue.contract import LaunchContext, Server, Variant, option

REFERENCE = "https://github.com/emmett-framework/granian#options"
NO_TRUSTED_PROXIES = "proxies are trusted only if the app is wrapped with granian.utils.proxies"
# Notes for both interfaces.
SHARED_NOTES = (
    "--backpressure, the maximum number of connections, above the load's number "
    f"(default backlog / workers; {REFERENCE})",
    f"--http 1 --no-ws: only HTTP/1.1 is measured ({REFERENCE})",
    f"--log-level warning; the access log is off by default ({REFERENCE})",
    "--http1-header-read-timeout 60000 (60 s, the maximum): granian closes connections "
    f"that are idle for longer ({REFERENCE})",
)


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """``python -m granian``."""
    return [
        *(str(context.python), "-m", "granian", "--interface", variant.interface),
        *("--host", context.host, "--port", str(context.port)),
        *option("--workers", context.workers),
        *_threads(variant, context),
        *option("--backlog", context.backlog),
        # One more than the load needs, for the prober: connections above the limit are not
        # accepted.
        *option(
            "--backpressure",
            None if context.max_connections is None else context.max_connections + 1,
        ),
        *context.when_tuned("--http", "1", "--no-ws", "--log-level", "warning", "--no-access-log"),
        *context.when_tuned("--http1-header-read-timeout", 60_000),
        context.app,
    ]


def _threads(variant: Variant, context: LaunchContext) -> list[str]:
    """The number of threads for a WSGI app; the type of event loop for an ASGI app."""
    if variant.interface == "asgi":
        return context.when_tuned("--loop", "uvloop")
    # uvloop is installed for ASGI apps only.
    return [*option("--blocking-threads", context.threads), "--loop", "asyncio"]


SERVER = Server(
    name="granian",
    summary="HTTP in Rust; per process, the app runs in a thread pool or an event loop",
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
                "--blocking-threads set by the profile (default half of --backpressure; "
                f"{REFERENCE})",
                *SHARED_NOTES,
            ),
            stock_notes=(
                "one process, up to 512 threads on demand, backlog and backpressure 1,024 "
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
                *SHARED_NOTES,
            ),
            stock_notes=(
                "one process, event loop uvloop (if it is installed), backlog and backpressure "
                f"1,024 ({REFERENCE})",
            ),
            unix_socket=True,
            helpers=1,
            no_trusted_proxies=NO_TRUSTED_PROXIES,
            deviation="scope['client'] is not a (str, int) pair; "
            "scope['server'] is not a (str, int) pair",
            interface="asgi",
        ),
    ),
    default_variant="default",
    command=command,
    takes_arguments=True,
    ignored_variables=("GRANIAN_*",),
)
