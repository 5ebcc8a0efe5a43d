"""Runs an app in pyruvate. wsgiload is not installed in its environment."""

# The server is not installed in the environment in which this file is type-checked.
# mypy: disable-error-code="import-untyped,import-not-found"

from __future__ import annotations

import argparse
import importlib
import os
import socket

import pyruvate

FIRST_PASSED_FD = 3  # the first file descriptor of sd_listen_fds(3)


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
        pass_socket(options)
    address = f"{options.host}:{options.port}" if options.backlog is None else None
    pyruvate.serve(app, address, options.threads)


def pass_socket(options: argparse.Namespace) -> None:
    """Create a listening socket and pass it to pyruvate like systemd does."""
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind((options.host, options.port))
    listening.listen(options.backlog)
    os.dup2(listening.detach(), FIRST_PASSED_FD)
    os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1"}


if __name__ == "__main__":
    main()
