"""Werkzeug's development server, as started by ``flask run``; a baseline."""

from __future__ import annotations

from pathlib import Path

from wsgiload.catalogue.contract import LaunchContext, Server, Variant, option, runner

REFERENCE = "https://werkzeug.palletsprojects.com/en/stable/serving/"


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """Start a runner, because Werkzeug has no command line."""
    return [
        *runner(context, Path(__file__), "run_werkzeug.py"),
        *("--host", context.host, "--port", str(context.port)),
        *option("--backlog", context.backlog),
        *(["--threaded"] if variant.name == "threads" else []),
        *context.when_tuned("--no-log"),
        context.app,
    ]


def _variant(name: str, summary: str, framing: str) -> Variant:
    return Variant(
        name=name,
        summary=summary,
        keepalive=False,
        uses_workers=False,
        uses_threads=False,
        notes=(
            f"logger werkzeug at level ERROR: by default, every request is logged ({REFERENCE})",
            f"LISTEN_QUEUE set by the profile (default 128; {REFERENCE})",
            "every response has Connection: close",
        ),
        stock_notes=(f"every request logged, backlog 128 ({REFERENCE})",),
        framing="close" if framing == "close" else "chunked",
        no_trusted_proxies="proxies are trusted only if the app is wrapped with ProxyFix",
        deviation="REMOTE_PORT is not a string",
        extra=True,
    )


SERVER = Server(
    name="werkzeug",
    summary="Flask's development server; not for production",
    homepage="https://werkzeug.palletsprojects.com/",
    source=Path(__file__),
    requirements=("werkzeug==3.1.9",),
    distribution="werkzeug",
    variants=(
        _variant("default", "one request at a time", "close"),
        _variant("threads", "a new thread per connection, as with flask run", "chunked"),
    ),
    default_variant="default",
    command=command,
)
