"""Runs an app in bjoern. wsgiload is not installed in bjoern's environment."""

# The server is not installed in the environment in which this file is type-checked.
# mypy: disable-error-code="import-untyped,import-not-found"

from __future__ import annotations

import argparse
import importlib

import bjoern


def main() -> None:
    """Serve until a signal ends the process."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--backlog", type=int)
    parser.add_argument("--reuse-port", action="store_true")
    parser.add_argument("app")
    options = parser.parse_args()
    module, _, name = options.app.partition(":")
    app = getattr(importlib.import_module(module), name)
    settings = {} if options.backlog is None else {"listen_backlog": options.backlog}
    bjoern.run(app, options.host, options.port, reuse_port=options.reuse_port, **settings)


if __name__ == "__main__":
    main()
