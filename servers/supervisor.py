"""supervisor: starts waitress processes that share one listening socket (``fcgi-program``)."""

from __future__ import annotations

from pathlib import Path

from wsgiload.catalogue.contract import LaunchContext, Server, Variant, option, runner

CONFIGURATION = "https://supervisord.readthedocs.io/en/latest/configuration.html"
ARGUMENTS = "https://docs.pylonsproject.org/projects/waitress/en/stable/arguments.html"


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """Start a runner, which writes supervisord's configuration and executes supervisord."""
    return [
        *runner(context, Path(__file__), "run_supervisor.py"),
        *("--host", context.host, "--port", str(context.port)),
        *("--folder", str(context.scratch_dir)),
        *option("--workers", context.workers),
        *option("--threads", context.threads),
        *option("--backlog", context.backlog),
        # One more than the load needs, for the prober; at the limit, waitress stops accepting.
        *option(
            "--connections",
            None if context.max_connections is None else context.max_connections + 1,
        ),
        *option("--keepalive", context.idle_timeout_s),
        context.app,
    ]


SERVER = Server(
    name="supervisor",
    summary="process supervisor; its waitress processes share one socket",
    homepage="https://github.com/Supervisor/supervisor",
    source=Path(__file__),
    requirements=("supervisor==4.3.0", "waitress==3.0.2"),
    distribution="supervisor",
    variants=(
        Variant(
            name="waitress",
            summary="several waitress processes that share one socket",
            keepalive=True,
            uses_workers=True,
            uses_threads=True,
            notes=(
                "fcgi-program: the only program type whose processes can share a socket "
                f"({CONFIGURATION})",
                f"numprocs and socket_backlog set by the profile ({CONFIGURATION})",
                "connection_limit, channel_timeout, asyncore_use_poll and trusted_proxy: as for "
                f"the server waitress ({ARGUMENTS})",
            ),
            stock_notes=(
                f"one process with 4 threads, at most 100 connections, select() ({ARGUMENTS})",
            ),
            helpers=1,
            extra=True,
        ),
    ),
    default_variant="waitress",
    command=command,
    ignored_variables=("SUPERVISOR_*",),
)
