"""Runs an app in wsgiref. Standard library only."""

from __future__ import annotations

import argparse
import importlib
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server


class SilentHandler(WSGIRequestHandler):
    """Does not log requests."""

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing."""


def main() -> None:
    """Serve until a signal ends the process."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--backlog", type=int)
    parser.add_argument("--no-log", action="store_true")
    parser.add_argument("app")
    options = parser.parse_args()
    module, _, name = options.app.partition(":")
    app = getattr(importlib.import_module(module), name)
    if options.backlog is not None:
        # Set on the class, because the socket already listens when make_server returns.
        WSGIServer.request_queue_size = options.backlog
    handler = SilentHandler if options.no_log else WSGIRequestHandler
    make_server(options.host, options.port, app, handler_class=handler).serve_forever()


if __name__ == "__main__":
    main()
