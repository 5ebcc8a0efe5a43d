"""mod_wsgi-express: Apache in front, the app in daemon processes behind it."""

from __future__ import annotations

from pathlib import Path

from wsgiload.catalogue.contract import Dependency, LaunchContext, Server, Variant, option, runner

REFERENCE = "https://github.com/GrahamDumpleton/mod_wsgi/blob/develop/README.rst"
DIRECTIVES = "https://httpd.apache.org/docs/2.4/mod/"


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """Our runner adds to Apache's configuration what mod_wsgi-express has no option for, and
    becomes it."""
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
    summary="Apache with its event MPM; the app in daemon processes with threads",
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
                "--keep-alive-timeout longer than the run, MaxKeepAliveRequests 0 (2 s and "
                f"500; {REFERENCE})",
                "ListenBacklog set by the profile (it generates 500; "
                f"{DIRECTIVES}mpm_common.html#listenbacklog)",
                "one front process of 64 threads, AsyncRequestWorkerFactor 32: "
                f"{DIRECTIVES}event.html",
                "--queue-timeout, --request-timeout and --socket-timeout longer than the run (45 s "
                f"and 60 s; {REFERENCE})",
                f"LimitRequestFieldSize 65536: large cookies (default 8,190; {DIRECTIVES}core.html"
                "#limitrequestfieldsize)",
                "--trust-proxy and --trust-proxy-header: X-Forwarded-Proto sets the scheme, as in "
                f"other servers (default off; {REFERENCE})",
                f"the access log is off by default ({REFERENCE})",
                "root starts it in a user namespace (www-data inside, root outside), because "
                "Apache refuses to run as root and www-data cannot read root's home directory "
                "(user_namespaces(7), "
                "https://man7.org/linux/man-pages/man7/user_namespaces.7.html)",
                "Apache's parent and front process count as part of the server",
            ),
            stock_notes=(
                "1 process of 5 threads, 7 clients at once, keep-alive for 2 s, backlog 500 "
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
