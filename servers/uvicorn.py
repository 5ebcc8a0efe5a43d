"""uvicorn: an ASGI server; a2wsgi runs WSGI apps in a thread pool."""

from __future__ import annotations

import os
from pathlib import Path

from wsgiload.catalogue.contract import LaunchContext, Server, Variant, option, runner

REFERENCE = "https://www.uvicorn.org/settings/"
ADAPTER = "https://github.com/abersheeran/a2wsgi"


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """``python -m uvicorn``; for a WSGI app, a runner that wraps the app with a2wsgi."""
    if variant.interface == "asgi":
        return _asgi_command(context)
    return [
        *runner(context, Path(__file__), "run_uvicorn.py"),
        *("--host", context.host, "--port", str(context.port)),
        *option("--workers", context.workers),
        *option("--threads", context.threads),
        *option("--backlog", context.backlog),
        *option("--keepalive", context.idle_timeout_s),
        context.app,
    ]


def _asgi_command(context: LaunchContext) -> list[str]:
    return [
        *(str(context.python), "-m", "uvicorn"),
        *("--host", context.host, "--port", str(context.port)),
        *option("--workers", context.workers),
        *option("--backlog", context.backlog),
        *option("--timeout-keep-alive", context.idle_timeout_s),
        *context.when_tuned("--loop", "uvloop", "--http", "httptools"),
        *context.when_tuned("--no-access-log", "--log-level", "warning"),
        *context.when_tuned("--timeout-graceful-shutdown", 2),
        context.app,
    ]


def environ(variant: Variant, context: LaunchContext) -> dict[str, str]:
    """Workers import the runner by name, so its folder must be on the import path."""
    if variant.interface == "asgi":
        return {}
    return {
        "PYTHONPATH": os.pathsep.join(
            [str(context.import_dir), str(Path(__file__).parent / "runners")]
        )
    }


SERVER = Server(
    name="uvicorn",
    summary="ASGI server; a2wsgi runs WSGI apps in a thread pool",
    homepage="https://www.uvicorn.org/",
    source=Path(__file__),
    # httptools and uvloop are those of the extra `standard`.
    requirements=("uvicorn==0.54.0", "a2wsgi==1.10.10", "httptools==0.9.0", "uvloop==0.23.0"),
    distribution="uvicorn",
    variants=(
        Variant(
            name="a2wsgi",
            summary="a2wsgi on h11 and asyncio",
            keepalive=True,
            uses_workers=True,
            uses_threads=True,
            notes=(
                f"a2wsgi's WSGIMiddleware: uvicorn's --interface wsgi is deprecated ({ADAPTER})",
                f"timeout_keep_alive longer than the run (default 5 s; {REFERENCE})",
                "access_log off, log_level warning: by default, every request is logged "
                f"({REFERENCE})",
                f"backlog set by the profile (default 2,048; {REFERENCE})",
                "TCP_NODELAY on the socket of several workers: otherwise, Nagle's algorithm delays "
                "responses of several writes by 40 ms",
                "with several workers, there are two more processes: the main process and a helper",
            ),
            stock_notes=(
                "one process, 10 threads in a2wsgi, every request logged, keep-alive for 5 s "
                f"({REFERENCE})",
            ),
            unix_socket=True,
            helpers=2,
            extra=True,
        ),
        Variant(
            name="asgi",
            summary="ASGI on uvloop and httptools, as in uvicorn[standard]",
            keepalive=True,
            uses_workers=True,
            uses_threads=False,
            notes=(
                f"--loop uvloop --http httptools: the defaults if they are installed ({REFERENCE})",
                f"--timeout-keep-alive longer than the run (default 5 s; {REFERENCE})",
                "--no-access-log, --log-level warning: by default, every request is logged "
                f"({REFERENCE})",
                f"--timeout-graceful-shutdown 2: limits the shutdown time ({REFERENCE})",
                f"backlog set by the profile (default 2,048; {REFERENCE})",
                "with several workers, there are two more processes: the main process and a helper",
            ),
            stock_notes=(f"one process, every request logged, keep-alive for 5 s ({REFERENCE})",),
            unix_socket=True,
            helpers=2,
            interface="asgi",
            takes_arguments=True,
        ),
    ),
    default_variant="a2wsgi",
    command=command,
    environ=environ,
    ignored_variables=("UVICORN_*", "WEB_CONCURRENCY"),
)
