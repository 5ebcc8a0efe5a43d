"""uWSGI: a C server with a master and workers, built from source for the interpreter it embeds."""

from __future__ import annotations

from pathlib import Path

from wsgiload.catalogue.contract import Dependency, LaunchContext, Server, Variant, option, runner

OPTIONS = "https://uwsgi-docs.readthedocs.io/en/latest/Options.html"
THINGS = "https://uwsgi-docs.readthedocs.io/en/latest/ThingsToKnow.html"
HTTP = "https://uwsgi-docs.readthedocs.io/en/latest/HTTP.html"
GEVENT = "https://uwsgi-docs.readthedocs.io/en/latest/Gevent.html"

HEAD_BYTES = 65_535  # uWSGI's maximum

NOTES = (
    f"--master --die-on-term --no-orphans: by default, SIGTERM reloads the server ({THINGS})",
    f"--need-app: exits if the app cannot be loaded (default: every response is a 500; {THINGS})",
    f"--enable-threads: the app's threads run even with --threads 1 ({THINGS})",
    f"--single-interpreter: one app needs no sub-interpreters ({OPTIONS}#single-interpreter)",
    f"--disable-logging: by default, every request is logged ({OPTIONS}#disable-logging)",
    f"--buffer-size {HEAD_BYTES}: request heads up to 64 KiB (default 4 KiB; {THINGS})",
    f"--listen set by the profile, at most somaxconn (default 100; {THINGS})",
    "harakiri, cheaper, max-requests and thunder-lock are off by default",
)
ROUTER_NOTES = (
    "--http-keepalive, --http-auto-chunked, --add-header 'Connection: Keep-Alive': without them, "
    f"the router closes connections without sending Connection: close ({HTTP})",
    "the server's CPU time and memory include those of the HTTP router, a separate process",
)
ROUTER_DELAYS = "--tcp-nodelay has no effect on the HTTP router"
STOCK_NOTES = (
    "one process, one thread, no master, backlog 100, every request logged; --die-on-term and "
    f"--no-orphans are set, because the server cannot be stopped without them ({THINGS})",
)
ROUTER_STOCK_NOTES = (
    *STOCK_NOTES,
    f"the router closes each connection after one response, without Connection: close ({HTTP})",
)


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """The ``uwsgi`` binary, or a runner that starts uWSGI behind nginx."""
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
    """The options for the part that speaks HTTP with the client."""
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
    """The ``uwsgi`` binary. It embeds Python, so the command names the environment."""
    return [
        str(context.bin / "uwsgi"),
        *listening,
        *("--virtualenv", str(context.bin.parent), "--pythonpath", str(context.import_dir)),
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
            summary="workers speak HTTP, without a router; every connection is closed",
            keepalive=False,
            uses_workers=True,
            uses_threads=True,
            notes=(
                *NOTES,
                "--http-socket: no router process; every connection is closed after its response "
                f"({OPTIONS}#http-socket)",
            ),
            stock_notes=STOCK_NOTES,
            framing="close",
            unix_socket=True,
            helpers=1,
        ),
        Variant(
            name="http11-socket",
            summary="workers speak HTTP/1.1 with keep-alive, without a router",
            keepalive=True,
            uses_workers=True,
            uses_threads=True,
            notes=(
                *NOTES,
                "--http11-socket: keep-alive in the workers; each open connection occupies a "
                f"worker ({HTTP})",
                "a body without Content-Length is close-delimited, so keep-alive needs this header",
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
            delays_writes=ROUTER_DELAYS,
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
                "--gevent: one greenlet per connection; --gevent-monkey-patch: sleeps of the app "
                f"yield to the event loop ({GEVENT})",
            ),
            stock_keepalive=False,
            stock_framing="close",
            stock_notes=(
                *ROUTER_STOCK_NOTES,
                f"--gevent 100, as in the documentation: there is no default ({GEVENT})",
            ),
            unix_socket=True,
            helpers=2,
            delays_writes=ROUTER_DELAYS,
        ),
        Variant(
            name="nginx",
            summary="uWSGI behind nginx: the uwsgi protocol over a Unix socket",
            keepalive=True,
            uses_workers=True,
            uses_threads=True,
            notes=(
                *NOTES,
                "nginx opens a connection to uWSGI for each request: the uwsgi protocol has no "
                "keep-alive (https://uwsgi-docs.readthedocs.io/en/latest/Nginx.html)",
                "nginx: one worker process, access_log off, keepalive_requests and "
                "keepalive_timeout never reached, large_client_header_buffers 4 64k (default 4 8k; "
                "https://nginx.org/en/docs/http/ngx_http_core_module.html)",
                "the server's processes include the runner that starts nginx, nginx's master and "
                "its worker",
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
    clean_exit_codes=(0, -15, 30),  # 30: exit code of a process without a master
)
