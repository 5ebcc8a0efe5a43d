"""Runs an app in cheroot. wsgiload is not installed in cheroot's environment."""

# The server is not installed in the environment in which this file is type-checked.
# mypy: disable-error-code="import-untyped,import-not-found"

from __future__ import annotations

import argparse
import importlib
import signal
import sys

from cheroot import wsgi


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--backlog", type=int)
    parser.add_argument("--timeout", type=int)
    parser.add_argument("app")
    options = parser.parse_args()
    module, _, name = options.app.partition(":")
    # Without an option, cheroot's default applies. ``max`` keeps the pool from growing.
    settings = {
        "numthreads": options.threads,
        "max": options.threads,
        "request_queue_size": options.backlog,
        "timeout": options.timeout,
    }
    server = wsgi.Server(
        (options.host, options.port),
        getattr(importlib.import_module(module), name),
        shutdown_timeout=1,
        **{key: value for key, value in settings.items() if value is not None},
    )
    if options.timeout is not None:
        server.keep_alive_conn_limit = None
    # safe_start() stops the server cleanly on SystemExit; by default, SIGTERM kills the process.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    server.safe_start()


if __name__ == "__main__":
    main()
