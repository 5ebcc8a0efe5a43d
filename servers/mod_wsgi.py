"""mod_wsgi-express: the app runs in daemon processes behind Apache."""

from __future__ import annotations

from pathlib import Path

from wsgiload.catalogue.contract import Dependency, LaunchContext, Server, Variant, option, runner

REFERENCE = "https://github.com/GrahamDumpleton/mod_wsgi/blob/develop/README.rst"
DIRECTIVES = "https://httpd.apache.org/docs/2.4/mod/"


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """Start a runner, which writes the Apache directives that mod_wsgi-express has no options for,
    then executes mod_wsgi-express."""
    return [
        *runner(context, Path(__file__), "run_mod_wsgi.py"),
        *(
            "--host",
            context.host,
            "--port",
            str(context.port),
            "--folder",
            str(context.scratch_dir),
        ),
        *option("--processes", context.workers),
        *option("--threads", context.threads),
        *option("--backlog", context.backlog),
        *option("--keepalive", context.idle_timeout_s),
        context.app,
    ]


SERVER = Server(
    name="mod_wsgi",
    summary="Apache with the event MPM; the app runs in daemon processes with threads",
    homepage="https://modwsgi.readthedocs.io/",
    source=Path(__file__),
    requirements=("mod-wsgi==6.1.1",),
    distribution="mod-wsgi",
    variants=(
        Variant(
            name="express",
            summary="mod_wsgi-express, daemon mode",
            keepalive=True,
            uses_workers=True,
            uses_threads=True,
            notes=(
                "--keep-alive-timeout longer than the run, unlimited MaxKeepAliveRequests "
                f"(defaults 2 s and 500; {REFERENCE})",
                "ListenBacklog set by the profile (default 500; "
                f"{DIRECTIVES}mpm_common.html#listenbacklog)",
                "one front process with 64 threads, AsyncRequestWorkerFactor 32 "
                f"({DIRECTIVES}event.html)",
                "--queue-timeout, --request-timeout and --socket-timeout longer than the run "
                f"(defaults 45 s, 60 s and 60 s; {REFERENCE})",
                "LimitRequestFieldSize 65536: allows large cookies (default 8,190 bytes; "
                f"{DIRECTIVES}core.html#limitrequestfieldsize)",
                "--trust-proxy, --trust-proxy-header: X-Forwarded-Proto sets the scheme, as in "
                f"other servers (default off; {REFERENCE})",
                f"the access log is off by default ({REFERENCE})",
                "if you are root, it runs in a user namespace in which root is www-data: Apache "
                "refuses to run as root, and the real www-data cannot read root's home directory "
                "(https://man7.org/linux/man-pages/man7/user_namespaces.7.html)",
                "the server's processes include Apache's parent and front process",
            ),
            stock_notes=(
                "one process with 5 threads, at most 7 clients, keep-alive for 2 s, backlog 500 "
                f"({REFERENCE})",
            ),
            helpers=4,
        ),
    ),
    default_variant="express",
    command=command,
    needs_compiler=True,
    needs=(
        Dependency("gcc", program="gcc"),
        Dependency("apache2", program="apache2"),
        Dependency("apache2-dev", header="apache2/httpd.h"),
    ),
)
