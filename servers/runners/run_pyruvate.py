"""Runs an app in pyruvate. Started in its environment, so it imports no wsgiload."""

# The server is not installed where this file is checked.
# mypy: disable-error-code="import-untyped,import-not-found"

from __future__ import annotations

import argparse
import importlib
import os
import socket

import pyruvate

FIRST_HANDED_OVER = 3  # the descriptor at which sd_listen_fds(3) begins


def main() -> None:
    """Serve until a signal ends the process."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--backlog", type=int)
    parser.add_argument("app")
    options = parser.parse_args()
    module, _, name = options.app.partition(":")
    app = getattr(importlib.import_module(module), name)
    if options.backlog is not None:
        hand_over(options)
    address = f"{options.host}:{options.port}" if options.backlog is None else None
    pyruvate.serve(app, address, options.threads)


def hand_over(options: argparse.Namespace) -> None:
    """A listening socket, left where a service manager would leave it."""
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind((options.host, options.port))
    listening.listen(options.backlog)
    os.dup2(listening.detach(), FIRST_HANDED_OVER)
    os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1"}


if __name__ == "__main__":
    main()
