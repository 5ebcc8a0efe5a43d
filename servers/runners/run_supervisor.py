"""Writes a configuration for supervisord, then executes supervisord; with --fd, it is one of the
processes that supervisord starts. wsgiload is not installed in supervisor's environment."""

# The servers are not installed in the environment in which this file is type-checked.
# mypy: disable-error-code="import-untyped,import-not-found"

from __future__ import annotations

import argparse
import importlib
import os
import shlex
import socket
import sys
from pathlib import Path

CONFIGURATION = """
[supervisord]
nodaemon = true
silent = true
logfile = /dev/null
logfile_maxbytes = 0
pidfile = {folder}/supervisord.pid

[fcgi-program:web]
command = {command}
directory = {app_dir}
socket = tcp://{host}:{port}
{backlog}
process_name = web-%(process_num)d
numprocs = {workers}
redirect_stderr = true
stdout_logfile = /dev/stderr
stdout_logfile_maxbytes = 0
"""
# supervisord passes the socket of an fcgi-program as this file descriptor.
SOCKET_DESCRIPTOR = 0


def main() -> None:
    """Execute supervisord, or serve with ``--fd``."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fd", type=int)
    parser.add_argument("--host")
    parser.add_argument("--port")
    parser.add_argument("--folder")
    parser.add_argument("--workers", default="1")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--backlog")
    parser.add_argument("--connections", type=int)
    parser.add_argument("--keepalive", type=int)
    parser.add_argument("app")
    options = parser.parse_args()
    if options.fd is None:
        supervise(options)
    else:
        serve(options)


def supervise(options: argparse.Namespace) -> None:
    """Write supervisord's configuration, then execute supervisord."""
    words = [sys.executable, "-P", __file__, "--fd", str(SOCKET_DESCRIPTOR)]
    for name in ("threads", "connections", "keepalive"):
        value = getattr(options, name)
        words += [f"--{name}", str(value)] if value is not None else []
    text = CONFIGURATION.format(
        folder=_literal(options.folder),
        command=_literal(shlex.join([*words, options.app])),
        app_dir=_literal(os.getcwd()),  # noqa: PTH109 - the path as given at the launch
        host=options.host,
        port=options.port,
        backlog=f"socket_backlog = {options.backlog}" if options.backlog else "",
        workers=options.workers,
    )
    path = Path(options.folder) / "supervisord.conf"
    path.write_text(text)
    supervisord = [sys.executable, "-P", "-m", "supervisor.supervisord"]
    os.execv(sys.executable, [*supervisord, "--configuration", str(path)])


def _literal(text: str) -> str:
    """The text, escaped so that supervisord expands nothing in it."""
    return text.replace("%", "%%")


def serve(options: argparse.Namespace) -> None:
    """Serve with waitress on the inherited socket until a signal ends the process."""
    import waitress

    arguments = {
        "threads": options.threads,
        "connection_limit": options.connections,
        "channel_timeout": options.keepalive,
    }
    settings = {key: value for key, value in arguments.items() if value is not None}
    if options.keepalive is not None:
        settings |= {
            "asyncore_use_poll": True,
            "trusted_proxy": "127.0.0.1",
            "trusted_proxy_headers": "x-forwarded-proto",
            "clear_untrusted_proxy_headers": False,
        }
    module, _, name = options.app.partition(":")
    app = getattr(importlib.import_module(module), name)
    waitress.serve(app, sockets=[socket.socket(fileno=options.fd)], **settings)


if __name__ == "__main__":
    main()
