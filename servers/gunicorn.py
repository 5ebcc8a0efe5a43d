"""gunicorn: a master that forks workers of one class; three of its classes."""

from __future__ import annotations

from pathlib import Path

from wsgiload.contract import LaunchContext, Server, Variant

SHARED_MEMORY = Path("/dev/shm")
SETTINGS = "https://docs.gunicorn.org/en/stable/settings.html"

NOTES = (
    f"--timeout 0: no worker is killed for being busy (default 30 s; {SETTINGS}#timeout)",
    f"--worker-tmp-dir /dev/shm: the heartbeat file must not wait for a disk ({SETTINGS}#worker-tmp-dir)",
    "--no-control-socket: since 27 all instances of one user would share one path below the home directory",
    "--config names an empty file: a gunicorn.conf.py in the app's folder would change the server unseen",
    f"--graceful-timeout 2: bounds the stop, not the run ({SETTINGS}#graceful-timeout)",
    "the access log is off and workers are not recycled by default; nothing is preloaded",
)


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """``python -m gunicorn`` with the settings all its worker classes share, then those of the class."""
    arguments = [
        *(str(context.python), "-m", "gunicorn"),
        *("--config", str(Path(__file__).parent / "runners" / "gunicorn_settings.py")),
        *("--bind", context.address),
        *("--workers", str(context.workers)),
        *("--worker-class", variant.name),
        *("--backlog", str(context.backlog)),
        *("--timeout", "0", "--graceful-timeout", "2"),
        *("--log-level", "warning"),
        "--no-control-socket",
    ]
    if SHARED_MEMORY.is_dir():
        arguments += ["--worker-tmp-dir", str(SHARED_MEMORY)]
    if variant.uses_threads:
        arguments += ["--threads", str(context.threads)]
    if variant.keepalive:
        arguments += ["--keep-alive", str(context.idle_timeout_s)]
        # gthread keeps at most worker_connections - threads idle connections (gunicorn issue 979).
        arguments += ["--worker-connections", str(context.max_connections + context.threads)]
    return [*arguments, context.app]


SERVER = Server(
    name="gunicorn",
    summary="pre-forking server, worker classes sync, gthread and gevent",
    homepage="https://gunicorn.org/",
    source=Path(__file__),
    # The extra brings packaging, without which the gevent worker class is refused as "invalid".
    requirements=("gunicorn[gevent]==27.0.1", "gevent==26.9.0"),
    distribution="gunicorn",
    variants=(
        Variant(
            name="sync",
            summary="one request at a time per process; closes every connection",
            keepalive=False,
            uses_workers=True,
            uses_threads=False,
            notes=(*NOTES, "never keeps a connection alive: always answers Connection: close"),
        ),
        Variant(
            name="gthread",
            summary="a pool of threads per process",
            keepalive=True,
            uses_workers=True,
            uses_threads=True,
            notes=(*NOTES, f"--keep-alive longer than the run (default 2 s; {SETTINGS}#keepalive)"),
        ),
        Variant(
            name="gevent",
            summary="greenlets, one event loop per process",
            keepalive=True,
            uses_workers=True,
            uses_threads=False,
            notes=(*NOTES, "the worker monkey-patches the process before it imports the app"),
        ),
    ),
    default_variant="gthread",
    command=command,
    ignored_variables=("GUNICORN_CMD_ARGS", "WEB_CONCURRENCY", "GEVENT_*", "GREENLET_*"),
    # The graceful stop (2 s at most), and up to two seconds of the master's own loop.
    stop_timeout_s=10.0,
)
