"""waitress: one process, one select or poll loop, a pool of threads for the app."""

from __future__ import annotations

from pathlib import Path

from wsgiload.catalogue.contract import LaunchContext, Server, Variant, option

ARGUMENTS = "https://docs.pylonsproject.org/projects/waitress/en/stable/arguments.html"


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """``python -m waitress`` (the same as waitress-serve)."""
    return [
        *(str(context.python), "-m", "waitress"),
        *("--listen", context.address),
        *option("--threads", context.threads),
        *option("--backlog", context.backlog),
        # One above, for the prober; at the limit waitress stops to accept.
        *option(
            "--connection-limit",
            None if context.max_connections is None else context.max_connections + 1,
        ),
        *option("--channel-timeout", context.idle_timeout_s),
        *context.when_tuned("--asyncore-use-poll", *_forwarded(context)),
        context.app,
    ]


def _forwarded(context: LaunchContext) -> list[str]:
    """As other servers treat X-Forwarded-* that comes from this host."""
    return [
        *("--trusted-proxy", context.host, "--trusted-proxy-headers", "x-forwarded-proto"),
        "--no-clear-untrusted-proxy-headers",
    ]


SERVER = Server(
    name="waitress",
    summary="single process, pure Python, thread pool behind one loop",
    homepage="https://docs.pylonsproject.org/projects/waitress/",
    source=Path(__file__),
    requirements=("waitress==3.0.2",),
    distribution="waitress",
    variants=(
        Variant(
            name="default",
            summary="thread pool",
            keepalive=True,
            uses_workers=False,
            uses_threads=True,
            notes=(
                "--connection-limit above the load: at the default 100 it stops accepting "
                f"({ARGUMENTS})",
                f"--channel-timeout longer than the run (default 120 s; {ARGUMENTS})",
                f"--asyncore-use-poll: select() supports only 1024 file descriptors ({ARGUMENTS})",
                "--trusted-proxy, --no-clear-untrusted-proxy-headers: X-Forwarded-* reaches the "
                f"app, as from other servers (by default it is removed; {ARGUMENTS})",
                "no access log exists; 'Task queue depth' warnings under overload go to the "
                "server's log and "
                "cost CPU (https://github.com/Pylons/waitress/issues/309)",
            ),
            stock_notes=(
                "4 threads, at most 100 connections (its own two sockets count), backlog "
                f"1024, select() ({ARGUMENTS})",
            ),
            unix_socket=True,
        ),
    ),
    default_variant="default",
    command=command,
    takes_arguments=True,
)
