"""Writes a configuration for circusd, then executes circusd. Runs in circus's environment; standard
library only."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

CONFIGURATION = """
[circus]
check_delay = 5
endpoint = ipc://{folder}/endpoint
pubsub_endpoint = ipc://{folder}/pubsub
statsd = False

[watcher:web]
cmd = {python} -P {backend} {words}
use_sockets = True
copy_env = True
working_dir = {app_dir}
numprocesses = {workers}
graceful_timeout = 5
close_child_stdout = False

[socket:web]
host = {host}
port = {port}
{backlog}
"""


def main() -> None:
    """Write the configuration, then execute circusd."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--backend", required=True)
    parser.add_argument("--workers", default="1")
    parser.add_argument("--threads")
    parser.add_argument("--backlog")
    parser.add_argument("--connections")
    parser.add_argument("--keepalive")
    parser.add_argument("app")
    options = parser.parse_args()
    words = ["--fd", "$(circus.sockets.web)", "--backend", options.backend]
    for name in ("threads", "connections", "keepalive"):
        value = getattr(options, name)
        words += [f"--{name}", value] if value is not None else []
    text = CONFIGURATION.format(
        folder=options.folder,
        python=sys.executable,
        backend=Path(__file__).with_name("run_chaussette.py"),
        words=" ".join([*words, options.app]),
        app_dir=os.getcwd(),  # noqa: PTH109 - the path as given at the launch
        workers=options.workers,
        host=options.host,
        port=options.port,
        backlog=f"backlog = {options.backlog}" if options.backlog else "",
    )
    path = Path(options.folder) / "circus.ini"
    path.write_text(text)
    circusd = [sys.executable, "-P", "-c", "from circus.circusd import main; main()"]
    os.execv(sys.executable, [*circusd, "--log-level", "error", str(path)])


if __name__ == "__main__":
    main()
