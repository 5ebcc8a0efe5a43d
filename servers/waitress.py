"""waitress: one process, one select() or poll() loop, a thread pool for the app."""

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
        # One more than the load needs, for the prober; at the limit, waitress stops accepting.
        *option(
            "--connection-limit",
            None if context.max_connections is None else context.max_connections + 1,
        ),
        *option("--channel-timeout", context.idle_timeout_s),
        *context.when_tuned("--asyncore-use-poll", *_forwarded(context)),
        context.app,
    ]


def _forwarded(context: LaunchContext) -> list[str]:
    """Pass X-Forwarded-* to the app and trust the scheme from this host, like other servers."""
    return [
        *("--trusted-proxy", context.host, "--trusted-proxy-headers", "x-forwarded-proto"),
        "--no-clear-untrusted-proxy-headers",
    ]


SERVER = Server(
    name="waitress",
    summary="single process, pure Python, one event loop and a thread pool",
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
                "--connection-limit above the load's number of connections (default 100; "
                f"{ARGUMENTS})",
                f"--channel-timeout longer than the run (default 120 s; {ARGUMENTS})",
                f"--asyncore-use-poll: select() supports only 1,024 file descriptors ({ARGUMENTS})",
                "--trusted-proxy, --no-clear-untrusted-proxy-headers: the app gets X-Forwarded-*, "
                f"as with other servers (by default, these headers are removed; {ARGUMENTS})",
                "no access log; under overload, writing 'Task queue depth' warnings to the log "
                "costs CPU time (https://github.com/Pylons/waitress/issues/309)",
            ),
            stock_notes=(
                "4 threads, at most 100 connections (including two sockets of waitress), backlog "
                f"1,024, select() ({ARGUMENTS})",
            ),
            unix_socket=True,
        ),
    ),
    default_variant="default",
    command=command,
    takes_arguments=True,
)
