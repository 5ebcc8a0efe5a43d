"""Runs an app in werkzeug's development server. wsgiload is not installed in its environment."""

# The server is not installed in the environment in which this file is type-checked.
# mypy: disable-error-code="import-untyped,import-not-found"

from __future__ import annotations

import argparse
import importlib
import logging

from werkzeug import serving


def main() -> None:
    """Serve until a signal ends the process."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--backlog", type=int)
    parser.add_argument("--threaded", action="store_true")
    parser.add_argument("--no-log", action="store_true")
    parser.add_argument("app")
    options = parser.parse_args()
    module, _, name = options.app.partition(":")
    app = getattr(importlib.import_module(module), name)
    if options.backlog is not None:
        # Set on the class, because the socket already listens when make_server returns.
        serving.BaseWSGIServer.request_queue_size = options.backlog
    if options.no_log:
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
    serving.make_server(options.host, options.port, app, threaded=options.threaded).serve_forever()


if __name__ == "__main__":
    main()
