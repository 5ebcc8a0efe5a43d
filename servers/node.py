"""Node.js, the baseline that is no Python: its http module answers what the bundled app hello
answers."""

from __future__ import annotations

from pathlib import Path

from wsgiload.catalogue.contract import Dependency, LaunchContext, Server, Variant, option

REFERENCE = "https://nodejs.org/api/http.html"


def command(variant: Variant, context: LaunchContext) -> list[str]:
    """``node`` with our script; it cannot run a WSGI app, and takes only its name."""
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
            summary="serves the bundled app hello only",
            keepalive=True,
            uses_workers=False,
            uses_threads=False,
            notes=(
                f"server.keepAliveTimeout longer than the run (default 5 s; {REFERENCE})",
                f"listen(backlog) set by the profile (default 511; {REFERENCE})",
                f"maxHeaderSize 65,536: large cookies (default 16 KiB; {REFERENCE})",
                f"requestTimeout 0 (default 300 s; {REFERENCE}); there is no access log",
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
