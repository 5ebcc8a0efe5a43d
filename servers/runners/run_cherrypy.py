"""Runs an app in CherryPy's engine. wsgiload is not installed in its environment."""

# The server is not installed in the environment in which this file is type-checked.
# mypy: disable-error-code="import-untyped,import-not-found"

from __future__ import annotations

import argparse
import importlib

import cherrypy


def main() -> None:
    """Serve until SIGTERM, which the engine handles."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--backlog", type=int)
    parser.add_argument("--timeout", type=int)
    parser.add_argument("app")
    options = parser.parse_args()
    module, _, name = options.app.partition(":")
    cherrypy.tree.graft(getattr(importlib.import_module(module), name), "/")
    settings = {"server.socket_host": options.host, "server.socket_port": options.port}
    optional = {
        "server.thread_pool": options.threads,
        "server.thread_pool_max": options.threads,
        "server.socket_queue_size": options.backlog,
        "server.socket_timeout": options.timeout,
    }
    settings |= {key: value for key, value in optional.items() if value is not None}
    if options.timeout is not None:
        settings |= {"environment": "production", "log.screen": False, "server.shutdown_timeout": 1}
    cherrypy.config.update(settings)
    if options.timeout is not None:
        keep_every_connection()
    cherrypy.engine.signals.subscribe()
    cherrypy.engine.start()
    cherrypy.engine.block()


def keep_every_connection() -> None:
    """Remove the limit on idle connections. It has no setting, so create the HTTP server before the
    engine does."""
    server = cherrypy.server
    server.httpserver, server.bind_addr = server.httpserver_from_self()
    server.httpserver.keep_alive_conn_limit = None


if __name__ == "__main__":
    main()
