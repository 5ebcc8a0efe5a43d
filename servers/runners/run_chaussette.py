"""Runs an app in a backend of Chaussette, on a socket inherited from circus. wsgiload is not
installed in circus's environment.

Chaussette offers gevent only on Python 2, and its waitress backend fails with waitress 3. This
runner replaces both; everything else is Chaussette's.
"""

# The servers are not installed in the environment in which this file is type-checked.
# mypy: disable-error-code="import-untyped,import-not-found"

from __future__ import annotations

import argparse
import functools
import importlib
import socket
import sys
from typing import Any


def main() -> None:
    """Serve until a signal ends the process. Without --keepalive, chaussette's defaults apply."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--backend", required=True)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--connections", type=int)
    parser.add_argument("--keepalive", type=int)
    parser.add_argument("app")
    options = parser.parse_args()
    if options.backend == "gevent":
        from gevent import monkey

        monkey.patch_all()
    if options.keepalive is not None:  # connections inherit it from the shared socket
        with socket.fromfd(options.fd, socket.AF_INET, socket.SOCK_STREAM) as listener:
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    module, _, name = options.app.partition(":")
    app = getattr(importlib.import_module(module), name)
    if options.backend == "waitress":
        serve_waitress(app, options)
    else:
        make_server(app, options).serve_forever()


def serve_waitress(app: object, options: argparse.Namespace) -> None:
    """Serve with waitress on the inherited socket, with the settings of ``waitress.py``."""
    import waitress

    arguments = {
        "threads": options.threads,
        "connection_limit": options.connections,
        "channel_timeout": options.keepalive,
    }
    settings = {key: value for key, value in arguments.items() if value is not None}
    if options.keepalive is not None:
        settings |= {
            "trusted_proxy": "127.0.0.1",
            "trusted_proxy_headers": "x-forwarded-proto",
            "clear_untrusted_proxy_headers": False,
        }
    waitress.serve(app, sockets=[socket.socket(fileno=options.fd)], **settings)


def make_server(app: object, options: argparse.Namespace) -> Any:
    """Create chaussette's server for the backend."""
    from chaussette.backend import register
    from chaussette.server import make_server as make

    is_quiet = options.keepalive is not None
    if options.backend == "gevent":
        register("gevent", functools.partial(make_gevent, is_quiet))
    if options.backend == "meinheld" and is_quiet:
        from meinheld import server

        server.set_keepalive(options.keepalive)
        server.set_access_logger(None)
    if options.backend == "wsgiref" and is_quiet:
        from chaussette.backend import _wsgiref

        _wsgiref.ChaussetteHandler.log_message = lambda *arguments: None
    return make(app, host=f"fd://{options.fd}", backend=options.backend)


def make_gevent(is_quiet: bool, *arguments: Any, **named: Any) -> Any:
    """Create chaussette's server and fix its error log: chaussette passes the arguments of an older
    gevent, so a newer gevent uses the handler as the error log."""
    from chaussette.backend import _gevent

    server = _gevent.Server(*arguments, **named | ({"log": None} if is_quiet else {}))
    server.error_log = server.environ["wsgi.errors"] = sys.stderr
    return server


if __name__ == "__main__":
    main()
