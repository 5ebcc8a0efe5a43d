"""gunicorn: a master that forks workers of one class, on its own or behind nginx."""

from __future__ import annotations

from pathlib import Path

from wsgiload.catalogue.contract import Dependency, LaunchContext, Server, Variant, option, runner

SHARED_MEMORY = Path("/dev/shm")
SETTINGS = "https://docs.gunicorn.org/en/stable/settings.html"
NGINX = "https://nginx.org/en/docs/http/ngx_http_upstream_module.html#keepalive"

# The default limit of other servers; gunicorn allows more only as "unlimited".
FIELD_BYTES = 65_536

NOTES = (
    f"--timeout 0: busy workers are not killed (default 30 s; {SETTINGS}#timeout)",
    "--worker-tmp-dir /dev/shm: the heartbeat does not wait for disk I/O "
    f"({SETTINGS}#worker-tmp-dir)",
    "--no-control-socket: since 25.1, all instances of one user share one socket path in the home "
    "directory",
    "--config with an empty file: gunicorn.conf.py in the app's folder has no effect unless "
    "--server-config names it",
    f"--graceful-timeout 2: limits the shutdown time ({SETTINGS}#graceful-timeout)",
    f"--limit-request-field_size {FIELD_BYTES}: allows large cookies (default 8,190 bytes; "
    f"{SETTINGS}#limit-request-field-size)",
    "by default, there is no access log, workers are not recycled, and the app is not preloaded",
)


KEEPALIVE_NOTE = f"--keep-alive longer than the run (default 2 s; {SETTINGS}#keepalive)"
STOCK_NOTES = (f"one sync worker, backlog 2,048, no access log ({SETTINGS})",)


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """gunicorn, or a runner that starts gunicorn behind nginx."""
    if variant.name != "nginx":
        return gunicorn(variant.name, context.address, variant, context)
    socket = context.scratch_dir / "gunicorn.sock"
    return [
        *runner(context, Path(__file__), "run_behind_nginx.py"),
        *(
            "--host",
            context.host,
            "--port",
            str(context.port),
            "--socket",
            str(socket),
            "--protocol",
            "http",
        ),
        *option("--backlog", context.backlog),
        *option("--connections", context.max_connections),
        "--",
        *gunicorn("gthread", f"unix:{socket}", variant, context),
    ]


def gunicorn(
    worker_class: str, address: str, variant: Variant, context: LaunchContext
) -> list[str]:
    """``python -m gunicorn`` with the common settings and those of the worker class."""
    arguments = [
        *(str(context.python), "-m", "gunicorn"),
        *("--config", str(Path(__file__).parent / "runners" / "gunicorn_settings.py")),
        *("--bind", address),
        *("--worker-class", worker_class),
        *option("--workers", context.workers),
        *option("--backlog", context.backlog),
        *context.when_tuned("--timeout", 0, "--graceful-timeout", 2, "--log-level", "warning"),
        *context.when_tuned("--limit-request-field_size", FIELD_BYTES),
        *(["--no-control-socket"] if context.is_at_least(25, 1) else []),
    ]
    if context.is_tuned and SHARED_MEMORY.is_dir():
        arguments += ["--worker-tmp-dir", str(SHARED_MEMORY)]
    if variant.uses_threads:
        arguments += option("--threads", context.threads)
    if variant.keepalive:
        arguments += option("--keep-alive", context.idle_timeout_s)
        arguments += option("--worker-connections", _worker_connections(context))
    return [*arguments, context.app]


def _worker_connections(context: LaunchContext) -> int | None:
    # gthread keeps at most worker_connections - threads idle connections (gunicorn issue 979).
    return (
        None
        if context.max_connections is None
        else context.max_connections + (context.threads or 0)
    )


SERVER = Server(
    name="gunicorn",
    summary="pre-forking server with a choice of worker classes",
    homepage="https://gunicorn.org/",
    source=Path(__file__),
    # The extra installs packaging, without which gunicorn rejects the gevent worker class.
    requirements=("gunicorn[gevent,tornado]==27.0.1", "gevent==26.9.0", "tornado==6.6.1"),
    distribution="gunicorn",
    variants=(
        Variant(
            name="sync",
            summary="one request at a time per process; closes every connection",
            keepalive=False,
            uses_workers=True,
            uses_threads=False,
            notes=(*NOTES, "no keep-alive: every response has Connection: close"),
            stock_notes=STOCK_NOTES,
            helpers=1,
            unix_socket=True,
        ),
        Variant(
            name="gthread",
            summary="a pool of threads per process",
            keepalive=True,
            uses_workers=True,
            uses_threads=True,
            notes=(*NOTES, KEEPALIVE_NOTE),
            stock_notes=(*STOCK_NOTES, "one thread, keep-alive for 2 s"),
            helpers=1,
            unix_socket=True,
        ),
        Variant(
            name="gevent",
            summary="greenlets, one event loop per process",
            keepalive=True,
            uses_workers=True,
            uses_threads=False,
            notes=(*NOTES, "the worker monkey-patches the process before it imports the app"),
            stock_notes=(*STOCK_NOTES, "1,000 connections per worker, keep-alive for 2 s"),
            helpers=1,
            unix_socket=True,
        ),
        Variant(
            name="tornado",
            summary="Tornado's event loop, one request at a time per process",
            keepalive=True,
            uses_workers=True,
            uses_threads=False,
            notes=(
                *NOTES,
                "responses are buffered and get a Content-Length, because Tornado does not support "
                "WSGI natively",
            ),
            stock_notes=STOCK_NOTES,
            framing="content-length",
            helpers=1,
            no_trusted_proxies="the worker class does not set Tornado's xheaders",
            unix_socket=True,
            extra=True,
        ),
        Variant(
            name="nginx",
            summary="gthread workers behind nginx, over a Unix socket",
            keepalive=True,
            uses_workers=True,
            uses_threads=True,
            notes=(
                *NOTES,
                KEEPALIVE_NOTE,
                "nginx reuses its connections to gunicorn: proxy_http_version 1.1 and "
                f"Connection '' ({NGINX})",
                "nginx: one worker process, access_log off, keepalive_requests and "
                "keepalive_timeout never reached, large_client_header_buffers 4 64k (default 4 8k; "
                "https://nginx.org/en/docs/http/ngx_http_core_module.html)",
                "the server's processes include the runner that starts nginx, nginx's master and "
                "its worker",
            ),
            stock_notes=(
                *STOCK_NOTES,
                "nginx opens a new HTTP/1.0 connection to gunicorn for each request; clients get "
                "keep-alive for 75 s and 1,000 requests "
                "(https://nginx.org/en/docs/http/ngx_http_proxy_module.html)",
            ),
            helpers=4,  # the runner, gunicorn's master, nginx's master and worker
            needs=(Dependency("nginx-light", program="nginx"),),
            extra=True,
        ),
        Variant(
            name="eventlet",
            summary="greenlets with eventlet",
            keepalive=True,
            uses_workers=True,
            uses_threads=False,
            notes=(f"removed from gunicorn ({SETTINGS}#worker-class)",),
            reason="gunicorn 26 removed this worker class, and eventlet's documentation recommends "
            "migrating away from eventlet",
        ),
    ),
    default_variant="gthread",
    command=command,
    takes_arguments=True,
    config_option="--config",
    ignored_variables=("GUNICORN_CMD_ARGS", "WEB_CONCURRENCY", "GEVENT_*", "GREENLET_*"),
    # At most 2 s for the graceful stop and 2 s for the master's loop.
    stop_timeout_s=10.0,
)
