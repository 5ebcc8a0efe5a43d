"""meinheld: HTTP in C, based on picoev; abandoned in 2020. It runs on current interpreters with a
newer greenlet than it requires."""

from __future__ import annotations

from pathlib import Path

from wsgiload.catalogue.contract import Dependency, LaunchContext, Server, Variant, option, runner

SOURCE = "https://github.com/mopemope/meinheld/blob/master/meinheld/server/server.c"
SETTINGS = "https://docs.gunicorn.org/en/stable/settings.html"

HEAD_LIMIT = "each header field is limited to 8 KiB, which cannot be changed"
GREENLET = (
    "greenlet 3 instead of the required greenlet<0.5, which does not compile for current "
    "interpreters"
)


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """A runner (meinheld has no command line), or gunicorn with meinheld's worker class."""
    if variant.name == "gunicorn":
        return gunicorn(context)
    return [
        *runner(context, Path(__file__), "prefork.py"),
        *option("--workers", context.workers),
        str(Path(__file__).parent / "runners" / "run_meinheld.py"),
        *("--host", context.host, "--port", str(context.port)),
        *option("--backlog", context.backlog),
        *option("--keepalive", context.idle_timeout_s),
        context.app,
    ]


def gunicorn(context: LaunchContext) -> list[str]:
    """gunicorn with the settings of ``gunicorn.py``."""
    return [
        *(str(context.python), "-m", "gunicorn"),
        *("--config", str(Path(__file__).parent / "runners" / "gunicorn_settings.py")),
        *("--bind", context.address, "--worker-class", "egg:meinheld#gunicorn_worker"),
        *option("--workers", context.workers),
        *option("--backlog", context.backlog),
        *option("--keep-alive", context.idle_timeout_s),
        *context.when_tuned("--timeout", 0, "--graceful-timeout", 2, "--log-level", "critical"),
        "--no-control-socket",
        context.app,
    ]


SERVER = Server(
    name="meinheld",
    summary="HTTP in C, based on picoev, one thread per process; abandoned in 2020",
    homepage="https://github.com/mopemope/meinheld",
    source=Path(__file__),
    # gunicorn loads the worker class through an entry point, which requires setuptools.
    requirements=(
        "meinheld==1.0.2",
        "greenlet==3.5.6",
        "gunicorn==27.0.1",
        "packaging==26.3",
        "setuptools==80.10.2",
    ),
    overrides=("greenlet==3.5.6",),
    distribution="meinheld",
    variants=(
        Variant(
            name="default",
            summary="standalone",
            keepalive=True,
            uses_workers=True,
            uses_threads=False,
            notes=(
                "set_keepalive: by default, the connection is closed after each response "
                f"({SOURCE})",
                f"set_backlog set by the profile (default 4,096; {SOURCE})",
                "set_access_logger(None): by default, every request is logged",
                GREENLET,
                "each worker listens on its own socket (SO_REUSEPORT)",
            ),
            stock_keepalive=False,
            stock_notes=(f"one process, no keep-alive, every request logged ({SOURCE})",),
            helpers=1,
            head_limit=HEAD_LIMIT,
            no_trusted_proxies="no setting for trusted proxies",
        ),
        Variant(
            name="gunicorn",
            summary="as a worker class of gunicorn",
            keepalive=True,
            uses_workers=True,
            uses_threads=False,
            notes=(
                f"--keep-alive longer than the run ({SETTINGS}#keepalive)",
                "--timeout 0, --graceful-timeout 2, --no-control-socket: as for gunicorn "
                f"({SETTINGS})",
                "--log-level critical: otherwise, every client disconnect is logged as an error",
                GREENLET,
            ),
            stock_notes=(f"one worker, keep-alive for 2 s ({SETTINGS})",),
            helpers=1,
            head_limit=HEAD_LIMIT,
            no_trusted_proxies="no setting for trusted proxies",
        ),
    ),
    default_variant="default",
    command=command,
    ignored_variables=("GUNICORN_CMD_ARGS", "WEB_CONCURRENCY"),
    needs_compiler=True,
    needs=(Dependency("gcc", program="gcc"),),
    python_max=(3, 12),  # on 3.13, it compiles but cannot be imported
    legacy=True,
)
