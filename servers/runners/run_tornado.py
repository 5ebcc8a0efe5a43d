"""Runs an app in Tornado. wsgiload is not installed in tornado's environment."""

# The server is not installed in the environment in which this file is type-checked.
# mypy: disable-error-code="import-untyped,import-not-found"

from __future__ import annotations

import argparse
import asyncio
import importlib
import logging
import signal
from concurrent.futures import ThreadPoolExecutor

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.wsgi import WSGIContainer


async def serve(options: argparse.Namespace) -> None:
    """Serve until SIGTERM."""
    module, _, name = options.app.partition(":")
    app = getattr(importlib.import_module(module), name)
    container = WSGIContainer(
        app, executor=ThreadPoolExecutor(options.threads) if options.threads else None
    )
    settings = {} if options.backlog is None else {"backlog": options.backlog}
    sockets = bind_sockets(options.port, options.host, reuse_port=options.reuse_port, **settings)
    HTTPServer(container, xheaders=options.trust_proxies).add_sockets(sockets)
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    await stopped.wait()


def main() -> None:
    """Read the options and serve."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--backlog", type=int)
    parser.add_argument("--no-log", action="store_true")
    parser.add_argument("--trust-proxies", action="store_true")
    parser.add_argument("--reuse-port", action="store_true")
    parser.add_argument("app")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO)
    if options.no_log:
        logging.getLogger("tornado.access").setLevel(logging.CRITICAL)
    asyncio.run(serve(options))


if __name__ == "__main__":
    main()
