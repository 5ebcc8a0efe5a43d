"""Twisted Web with WSGIResource: a reactor, and a thread pool for the app."""

from __future__ import annotations

from pathlib import Path

from wsgiload.catalogue.contract import LaunchContext, Server, Variant, option, runner

REFERENCE = "https://docs.twisted.org/en/stable/web/howto/web-in-60/wsgi.html"
SOURCE = "https://docs.twisted.org/en/stable/api/twisted.internet.interfaces.IReactorTCP.html"
CHANNEL = "https://docs.twisted.org/en/stable/api/twisted.web.http.HTTPChannel.html"


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """Start a runner: twistd's command line cannot set the size of the thread pool."""
    return [
        *runner(context, Path(__file__), "run_twisted.py"),
        *("--host", context.host, "--port", str(context.port)),
        *option("--threads", context.threads),
        *option("--backlog", context.backlog),
        *option("--timeout", context.idle_timeout_s),
        context.app,
    ]


SERVER = Server(
    name="twisted",
    summary="single process with a reactor and a thread pool",
    homepage="https://twisted.org/",
    source=Path(__file__),
    requirements=("twisted==26.10.0",),
    distribution="twisted",
    variants=(
        Variant(
            name="default",
            summary="WSGIResource",
            keepalive=True,
            uses_workers=False,
            uses_threads=True,
            notes=(
                "suggestThreadPoolSize set by the profile (default at most 10 threads; "
                f"{REFERENCE})",
                f"backlog set by the profile (default 50; {SOURCE})",
                "Site(timeout) longer than the run (default 60 s)",
                "HTTPChannel.totalHeadersSize and MAX_LENGTH 65536: request heads up to 64 KiB "
                f"(default 16 KiB; {CHANNEL})",
                "requests are not logged; HTTP/1.0 clients get no keep-alive",
            ),
            stock_notes=(
                f"at most 10 threads, backlog 50, idle connections closed after 60 s ({SOURCE})",
            ),
            unix_socket=True,
            no_trusted_proxies="no setting for trusted proxies",
            extra=True,
        ),
    ),
    default_variant="default",
    command=command,
)
