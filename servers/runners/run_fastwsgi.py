"""Runs an app in FastPySGI. wsgiload is not installed in its environment."""

# The server is not installed in the environment in which this file is type-checked.
# mypy: disable-error-code="import-untyped,import-not-found"

from __future__ import annotations

import argparse
import importlib

import fastpysgi


def main() -> None:
    """Serve until a signal ends the process."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--backlog", type=int)
    parser.add_argument("--no-delay", action="store_true")
    parser.add_argument("--reuse-port", action="store_true", help="ignored: always on")
    parser.add_argument("app")
    options = parser.parse_args()
    module, _, name = options.app.partition(":")
    app = getattr(importlib.import_module(module), name)
    server = fastpysgi.server
    if options.backlog is not None:
        server.backlog = options.backlog
    if options.no_delay:
        server.tcp_nodelay = 1
    server.init(app, options.host, options.port)
    server.run()


if __name__ == "__main__":
    main()
