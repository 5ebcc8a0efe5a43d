"""Node.js, the non-Python baseline: its http module sends the same responses as the bundled app
hello."""

from __future__ import annotations

from pathlib import Path

from wsgiload.catalogue.contract import Dependency, LaunchContext, Server, Variant, option

REFERENCE = "https://nodejs.org/api/http.html"


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """``node`` with a script, which responds like ``hello``; it cannot run a WSGI app."""
    return [
        *("/usr/bin/env", "node", str(Path(__file__).parent / "runners" / "node_hello.js")),
        *("--host", context.host, "--port", str(context.port)),
        *option("--backlog", context.backlog),
        *option("--keepalive", context.idle_timeout_s),
        context.app,
    ]


SERVER = Server(
    name="node",
    summary="Node.js http, a non-Python baseline: one process, one event loop",
    homepage="https://nodejs.org/",
    source=Path(__file__),
    requirements=(),
    distribution=None,
    version_command=("node", "--version"),
    variants=(
        Variant(
            name="default",
            summary="serves only the bundled app hello",
            keepalive=True,
            uses_workers=False,
            uses_threads=False,
            notes=(
                f"server.keepAliveTimeout longer than the run (default 5 s; {REFERENCE})",
                f"listen(backlog) set by the profile (default 511; {REFERENCE})",
                f"maxHeaderSize 65536: allows large cookies (default 16 KiB; {REFERENCE})",
                f"requestTimeout 0: no timeout (default 300 s; {REFERENCE}); no access log",
            ),
            stock_notes=(f"backlog 511, keep-alive for 5 s ({REFERENCE})",),
        ),
    ),
    default_variant="default",
    command=command,
    ignored_variables=("NODE_*",),
    needs=(Dependency("nodejs", program="node"),),
    serves_apps=False,
)
