"""Runs a WSGI app in uvicorn behind a2wsgi. wsgiload is not installed in its environment."""

# The server is not installed in the environment in which this file is type-checked.
# mypy: disable-error-code="import-untyped,import-not-found"

from __future__ import annotations

import argparse
import importlib
import os
import socket

import uvicorn
from a2wsgi import WSGIMiddleware
from uvicorn.supervisors import Multiprocess

APP_VARIABLE, THREADS_VARIABLE = "WSGILOAD_RUNNER_APP", "WSGILOAD_RUNNER_THREADS"


def make_app() -> WSGIMiddleware:
    """The app for one worker, which gets its settings from environment variables."""
    module, _, name = os.environ[APP_VARIABLE].partition(":")
    threads = os.environ.get(THREADS_VARIABLE)
    app = getattr(importlib.import_module(module), name)
    return WSGIMiddleware(app, workers=int(threads)) if threads else WSGIMiddleware(app)


def main() -> None:
    """Serve until SIGTERM, which uvicorn handles."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--backlog", type=int)
    parser.add_argument("--keepalive", type=int)
    parser.add_argument("app")
    options = parser.parse_args()
    os.environ[APP_VARIABLE] = options.app
    if options.threads is not None:
        os.environ[THREADS_VARIABLE] = str(options.threads)
    optional = {
        "workers": options.workers,
        "backlog": options.backlog,
        "timeout_keep_alive": options.keepalive,
    }
    settings = {key: value for key, value in optional.items() if value is not None}
    # Override the defaults: uvloop and httptools are installed for ASGI apps only.
    settings |= {"loop": "asyncio", "http": "h11"}
    if options.keepalive is not None:
        settings |= {"access_log": False, "log_level": "warning", "timeout_graceful_shutdown": 2}
    settings |= {"factory": True, "host": options.host, "port": options.port}
    if options.workers in (None, 1):
        uvicorn.run("run_uvicorn:make_app", **settings)
        return
    # For several workers, uvicorn binds a socket for which asyncio does not set TCP_NODELAY;
    # otherwise, this is what uvicorn.run does.
    config = uvicorn.Config("run_uvicorn:make_app", **settings)
    listener = config.bind_socket()
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    Multiprocess(config, sockets=[listener]).run()


if __name__ == "__main__":
    main()
