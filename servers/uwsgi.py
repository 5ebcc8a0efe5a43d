"""uWSGI: a master and its workers in C, built from source against the interpreter it will embed."""

from __future__ import annotations

from pathlib import Path

from wsgiload.catalogue.contract import Dependency, LaunchContext, Server, Variant, option, runner

OPTIONS = "https://uwsgi-docs.readthedocs.io/en/latest/Options.html"
THINGS = "https://uwsgi-docs.readthedocs.io/en/latest/ThingsToKnow.html"
HTTP = "https://uwsgi-docs.readthedocs.io/en/latest/HTTP.html"
GEVENT = "https://uwsgi-docs.readthedocs.io/en/latest/Gevent.html"

HEAD_BYTES = 65_535  # the largest that uWSGI has

NOTES = (
    f"--master --die-on-term --no-orphans: by default SIGTERM reloads ({THINGS})",
    f"--need-app: without it a server with no app responds to everything with 500 ({THINGS})",
    f"--enable-threads: threads of the app run even where --threads is 1 ({THINGS})",
    f"--single-interpreter: one app, so no sub-interpreters ({OPTIONS}#single-interpreter)",
    f"--disable-logging: by default every request is logged ({OPTIONS}#disable-logging)",
    f"--buffer-size {HEAD_BYTES}: by default request heads are limited to 4 KiB ({THINGS})",
    f"--listen = backlog (default 100); above somaxconn it refuses to start ({THINGS})",
    "no harakiri, no cheaper, no max-requests: all off by default; thunder-lock off",
)
ROUTER_NOTES = (
    "--http-keepalive, --http-auto-chunked and the header: without them the router closes "
    f"unannounced ({HTTP})",
    "the HTTP router is a separate process, whose CPU and memory count as the server's",
)
STOCK_NOTES = (
    "one process, no master, one thread, backlog 100, one log line per request; "
    "--die-on-term and "
    f"--no-orphans are set anyway, because it cannot be stopped without them ({THINGS})",
)
ROUTER_STOCK_NOTES = (
    *STOCK_NOTES,
    f"the router closes after each response, without announcing it ({HTTP})",
)


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """The ``uwsgi`` binary, or our runner that puts nginx in front of it."""
    if variant.name != "nginx":
        return uwsgi(front(variant.name, context), variant, context)
    socket = context.scratch_dir / "uwsgi.sock"
    return [
        *runner(context, Path(__file__), "run_behind_nginx.py"),
        *("--host", context.host, "--port", str(context.port)),
        *("--socket", str(socket), "--protocol", "uwsgi"),
        *option("--backlog", context.backlog),
        *option("--connections", context.max_connections),
        "--",
        *uwsgi(["--socket", str(socket), "--chmod-socket=666"], variant, context),
    ]


def front(name: str, context: LaunchContext) -> list[str]:
    """What speaks HTTP to the client."""
    if name in ("http-socket", "http11-socket"):
        return [f"--{name}", context.address]
    router = ["--http", context.address]
    if context.is_tuned:
        router += [f"--http-keepalive={context.idle_timeout_s}", "--http-auto-chunked"]
        router += ["--http-timeout", str(context.idle_timeout_s)]
        router += ["--add-header", "Connection: Keep-Alive"]
    if name == "gevent":
        greenlets = 100 if context.max_connections is None else context.max_connections
        router += ["--gevent", str(greenlets), "--gevent-monkey-patch"]
    return router


def uwsgi(listening: list[str], variant: Variant, context: LaunchContext) -> list[str]:
    """The binary embeds Python, so it is told where its environment is."""
    return [
        str(context.bin / "uwsgi"),
        *listening,
        *("--virtualenv", str(context.bin.parent)),
        *("--pythonpath", str(context.import_dir)),
        *("--module", context.app),
        *option("--processes", context.workers),
        *(option("--threads", context.threads) if variant.uses_threads else ()),
        *option("--listen", context.backlog),
        *("--die-on-term", "--no-orphans"),
        *context.when_tuned(
            "--enable-threads",
            "--master",
            "--need-app",
            "--single-interpreter",
            "--disable-logging",
            *("--buffer-size", str(HEAD_BYTES)),
        ),
    ]


SERVER = Server(
    name="uwsgi",
    summary="pre-forking server in C, in maintenance mode",
    homepage="https://uwsgi-docs.readthedocs.io/",
    source=Path(__file__),
    requirements=("uwsgi==2.0.31", "gevent==26.9.0"),
    distribution="uwsgi",
    variants=(
        Variant(
            name="http-socket",
            summary="workers speak HTTP themselves, without a router; closes every connection",
            keepalive=False,
            uses_workers=True,
            uses_threads=True,
            notes=(
                *NOTES,
                "--http-socket: no router process; it closes after each response "
                f"({OPTIONS}#http-socket)",
            ),
            stock_notes=STOCK_NOTES,
            framing="close",
            unix_socket=True,
            helpers=1,
        ),
        Variant(
            name="http11-socket",
            summary="workers speak HTTP/1.1 themselves, and keep connections",
            keepalive=True,
            uses_workers=True,
            uses_threads=True,
            notes=(
                *NOTES,
                "--http11-socket: keep-alive in the workers; each kept connection holds one "
                f"({HTTP})",
                "a body without Content-Length ends with the connection, so the app has to set it",
            ),
            stock_notes=STOCK_NOTES,
            framing="close",
            unix_socket=True,
            helpers=1,
        ),
        Variant(
            name="http",
            summary="an HTTP router in front of the workers",
            keepalive=True,
            uses_workers=True,
            uses_threads=True,
            notes=(*NOTES, *ROUTER_NOTES),
            stock_keepalive=False,
            stock_framing="close",
            stock_notes=ROUTER_STOCK_NOTES,
            unix_socket=True,
            helpers=2,
        ),
        Variant(
            name="gevent",
            summary="an HTTP router in front of workers that run greenlets",
            keepalive=True,
            uses_workers=True,
            uses_threads=False,
            notes=(
                *NOTES,
                *ROUTER_NOTES,
                "--gevent as many as connections, --gevent-monkey-patch: the app's sleeps "
                f"yield ({GEVENT})",
            ),
            stock_keepalive=False,
            stock_framing="close",
            stock_notes=(
                *ROUTER_STOCK_NOTES,
                f"--gevent needs a number; the documentation uses 100 ({GEVENT})",
            ),
            unix_socket=True,
            helpers=2,
        ),
        Variant(
            name="nginx",
            summary="nginx in front of the uwsgi protocol on a Unix socket",
            keepalive=True,
            uses_workers=True,
            uses_threads=True,
            notes=(
                *NOTES,
                "nginx opens a connection to uWSGI for each request: the protocol has no "
                "keep-alive "
                "(https://uwsgi-docs.readthedocs.io/en/latest/Nginx.html)",
                "nginx: access_log off, keepalive_requests and keepalive_timeout never "
                "reached, large_client_header_buffers 4 64k (default 8k), one separate "
                "process (https://nginx.org/en/docs/http/ngx_http_core_module.html)",
                "the supervisor that starts both, nginx's master and its workers count as the "
                "server's processes",
            ),
            stock_notes=STOCK_NOTES,
            helpers=4,
            needs=(Dependency("nginx-light", program="nginx"),),
        ),
    ),
    default_variant="http-socket",
    command=command,
    takes_arguments=True,
    ignored_variables=("UWSGI_*",),
    needs_compiler=True,
    needs=(Dependency("gcc", program="gcc"),),
    clean_exit_codes=(0, -15, 30),  # 30: what a process without a master ends with
)
