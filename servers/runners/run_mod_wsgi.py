"""Writes the Apache directives that mod_wsgi-express has no options for, then executes
mod_wsgi-express. Runs in its environment; standard library only."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

# A single front process at any load, because the CPU and memory limits are meant for the app. In
# the event MPM, idle connections need no thread.
APACHE = """
ListenBacklog {backlog}
MaxKeepAliveRequests 0
ServerLimit 1
StartServers 1
ThreadsPerChild 64
MaxRequestWorkers 64
MinSpareThreads 1
MaxSpareThreads 64
AsyncRequestWorkerFactor 32
RequestReadTimeout header=0 body=0
"""
BEYOND_ANY_RUN_S = "86400"
# Set before Apache reads mod_wsgi-express's file, because its virtual host copies the limit.
LARGE_FIELDS = "LimitRequestFieldSize 65536"
ADMINISTRATION_FOLDERS = "/usr/local/sbin:/usr/sbin:/sbin"


def main() -> None:
    """Execute mod_wsgi-express; in the tuned profile, write the directives first."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--processes")
    parser.add_argument("--threads")
    parser.add_argument("--backlog")
    parser.add_argument("--keepalive")
    parser.add_argument("app")
    options = parser.parse_args()
    module, _, name = options.app.partition(":")
    words = [str(Path(sys.executable).with_name("mod_wsgi-express")), "start-server", module]
    words += ["--application-type", "module", "--callable-object", name]
    words += ["--host", options.host, "--port", options.port]
    words += [
        "--server-root",
        str(options.folder / "apache"),
        "--working-directory",
        str(Path.cwd()),
    ]
    words += ["--log-to-terminal", "--log-level", "error", "--locale", "C.UTF-8"]
    words += ["--processes", options.processes] if options.processes else []
    words += ["--threads", options.threads] if options.threads else []
    if options.backlog:
        words += tuned(options)
    # As root, Apache requires another user, who cannot read files in root's home directory.
    prefix = (
        ["unshare", "--user", "--map-user=33", "--map-group=33", "--"] if os.geteuid() == 0 else []
    )
    os.execvp((prefix or words)[0], [*prefix, *words])


def tuned(options: argparse.Namespace) -> list[str]:
    """The options of the tuned profile; writes the file with the directives that have no option."""
    path = options.folder / "apache.conf"
    path.write_text(APACHE.format(backlog=options.backlog))
    words = ["--include-file", str(path), "--server-mpm", "event", "--max-clients", "64"]
    words += ["--keep-alive-timeout", options.keepalive]
    for timeout in ("queue", "request", "socket"):
        words += [f"--{timeout}-timeout", BEYOND_ANY_RUN_S]
    for name in ("Proto", "For", "Host"):
        words += ["--trust-proxy-header", f"X-Forwarded-{name}"]
    words += ["--trust-proxy", options.host]
    accept_large_fields(options.folder / "apache2")
    return words


def accept_large_fields(program: Path) -> None:
    """Let mod_wsgi-express start Apache with a script that adds a directive."""
    path = f"{os.environ.get('PATH', os.defpath)}:{ADMINISTRATION_FOLDERS}"
    apache = shutil.which("apache2", path=path) or "apache2"
    program.write_text(f"#!/bin/sh\nexec {apache} -C '{LARGE_FIELDS}' \"$@\"\n")
    program.chmod(0o755)
    os.environ["HTTPD"] = str(program)


if __name__ == "__main__":
    main()
