"""Runs an app in meinheld. wsgiload is not installed in meinheld's environment."""

# The server is not installed in the environment in which this file is type-checked.
# mypy: disable-error-code="import-untyped,import-not-found"

from __future__ import annotations

import argparse
import importlib
import socket

from meinheld import server


def main() -> None:
    """Serve until SIGTERM, which meinheld handles."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--backlog", type=int)
    parser.add_argument("--keepalive", type=int)
    parser.add_argument("--reuse-port", action="store_true")
    parser.add_argument("app")
    options = parser.parse_args()
    module, _, name = options.app.partition(":")
    app = getattr(importlib.import_module(module), name)
    if options.keepalive is not None:
        server.set_keepalive(options.keepalive)
        server.set_access_logger(None)
    if options.backlog is not None:
        server.set_backlog(options.backlog)
    if options.reuse_port:
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listening.bind((options.host, options.port))
        listening.listen(server.get_backlog())
        server.set_listen_socket(listening.detach())
    else:
        server.listen((options.host, options.port))
    server.run(app)


if __name__ == "__main__":
    main()
