"""Runs an app in gevent.pywsgi. wsgiload is not installed in gevent's environment."""

# The server is not installed in the environment in which this file is type-checked.
# mypy: disable-error-code="import-untyped,import-not-found"

from gevent import monkey

monkey.patch_all()  # before all other imports, including that of the app

import argparse  # noqa: E402
import importlib  # noqa: E402
import signal  # noqa: E402
import socket  # noqa: E402

import gevent  # noqa: E402
from gevent.pywsgi import WSGIServer  # noqa: E402


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--backlog", type=int)
    parser.add_argument("--no-log", action="store_true")
    parser.add_argument("--no-delay", action="store_true")
    parser.add_argument("app")
    options = parser.parse_args()
    module, _, name = options.app.partition(":")
    app = getattr(importlib.import_module(module), name)
    log = None if options.no_log else "default"  # gevent's default: every request on standard error
    server = WSGIServer((options.host, options.port), app, backlog=options.backlog, log=log)
    server.stop_timeout = 1  # otherwise, idle connections delay the stop
    server.start()
    if options.no_delay:  # connections inherit it from the listening socket
        server.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    gevent.signal_handler(signal.SIGTERM, server.stop)
    server.serve_forever()


if __name__ == "__main__":
    main()
