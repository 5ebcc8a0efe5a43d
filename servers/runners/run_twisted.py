"""Runs an app in Twisted Web. wsgiload is not installed in twisted's environment."""

# The server is not installed in the environment in which this file is type-checked.
# mypy: disable-error-code="import-untyped,import-not-found"

from __future__ import annotations

import argparse
import importlib

from twisted.internet import reactor
from twisted.web.http import HTTPChannel
from twisted.web.server import Site
from twisted.web.wsgi import WSGIResource

HEAD_BYTES = 65_536


def main() -> None:
    """Serve until SIGTERM, which the reactor handles."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--backlog", type=int)
    parser.add_argument("--timeout", type=int)
    parser.add_argument("app")
    options = parser.parse_args()
    module, _, name = options.app.partition(":")
    app = getattr(importlib.import_module(module), name)
    if options.threads is not None:
        reactor.suggestThreadPoolSize(options.threads)
    site = Site(WSGIResource(reactor, reactor.getThreadPool(), app))
    if options.timeout is not None:
        HTTPChannel.totalHeadersSize = HTTPChannel.MAX_LENGTH = HEAD_BYTES
        site.timeOut = options.timeout
    settings = {} if options.backlog is None else {"backlog": options.backlog}
    reactor.listenTCP(options.port, site, interface=options.host, **settings)
    reactor.run()


if __name__ == "__main__":
    main()
