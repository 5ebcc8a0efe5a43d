"""uWSGI: a master and its workers in C, built from source against the interpreter it will embed."""

from __future__ import annotations

from pathlib import Path

from wsgiload.contract import LaunchContext, Server, Variant

OPTIONS = "https://uwsgi-docs.readthedocs.io/en/latest/Options.html"
THINGS = "https://uwsgi-docs.readthedocs.io/en/latest/ThingsToKnow.html"


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """The ``uwsgi`` binary; it embeds Python, so it is told where its environment is."""
    return [
        str(context.bin / "uwsgi"),
        *("--http-socket", context.address),
        *("--virtualenv", str(context.bin.parent)),
        *("--pythonpath", str(context.app_dir)),
        *("--module", context.app),
        *("--processes", str(context.workers)),
        *("--threads", str(context.threads)),
        *("--listen", str(context.backlog)),
        "--enable-threads",
        "--master",
        "--die-on-term",
        "--no-orphans",
        "--need-app",
        "--single-interpreter",
        "--disable-logging",
    ]


SERVER = Server(
    name="uwsgi",
    summary="pre-forking server in C, in maintenance mode",
    homepage="https://uwsgi-docs.readthedocs.io/",
    source=Path(__file__),
    requirements=("uwsgi==2.0.31",),
    distribution="uwsgi",
    variants=(
        Variant(
            name="http-socket",
            summary="workers speak HTTP themselves, without a router; closes every connection",
            keepalive=False,
            uses_workers=True,
            uses_threads=True,
            notes=(
                f"--http-socket: no router process; it closes after each response ({OPTIONS}#http-socket)",
                f"--master --die-on-term --no-orphans: by default SIGTERM reloads ({THINGS})",
                f"--need-app: without it a server with no app answers 500 to everything ({THINGS})",
                f"--enable-threads: threads of the app run even where --threads is 1 ({THINGS})",
                f"--single-interpreter: one app, so no sub-interpreters ({OPTIONS}#single-interpreter)",
                f"--disable-logging: by default every request is logged ({OPTIONS}#disable-logging)",
                f"--listen = backlog (default 100); above somaxconn it refuses to start ({THINGS})",
                "no harakiri, no cheaper, no max-requests: all off by default; thunder-lock off",
            ),
        ),
    ),
    default_variant="http-socket",
    command=command,
    ignored_variables=("UWSGI_*",),
    needs_compiler=True,
    system_packages=("gcc", "python3-dev"),
)
