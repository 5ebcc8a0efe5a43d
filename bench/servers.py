"""The servers of the benchmarks: nginx, and ``refsrv`` in fast mode or with a log."""

from __future__ import annotations

import contextlib
import csv
import os
import selectors
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from bench.generators import find_program
from bench.placement import Placement

_START_S = 10.0
_NGINX = """\
daemon off;
master_process off;
worker_processes 1;
pid {directory}/nginx.pid;
error_log stderr crit;
events {{ worker_connections 32768; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    keepalive_timeout 3600s;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    server {{
        listen 127.0.0.1:{port} backlog=16384;
        location / {{ default_type text/plain; return 200 "hello"; }}
    }}
}}
"""


class ServerError(Exception):
    """A server did not start."""


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """A server and its arguments. ``fresh``: a new process, and so a new port, for every run.
    ``is_spinning``: it hardly ever sleeps."""

    name: str
    arguments: tuple[str, ...] = ()
    logs: bool = False
    fresh: bool = False
    is_spinning: bool = False


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One request in the log of ``refsrv``, in ns of CLOCK_MONOTONIC. ``write_ns`` is None without
    a response, ``queued_ns`` without a valid kernel timestamp of the request."""

    arrive_ns: int
    # When its response was due.
    finish_ns: int
    write_ns: int | None
    queued_ns: int | None = None


@dataclass(slots=True)
class Server:
    """A running server: its port and, after it has stopped, its log."""

    port: int
    log: list[LogEntry]

    @property
    def url(self) -> str:
        """The URL for the generators."""
        return f"http://127.0.0.1:{self.port}/"


NGINX = ServerSpec("nginx")
REFSRV_FAST = ServerSpec("refsrv, fast", ("--fast",))


def refsrv_holding(hold: str, spin: str, *, logs: bool, stamps: bool = False) -> ServerSpec:
    """``refsrv`` that delays each response by ``hold`` and spins for ``spin`` before each response.

    With ``stamps``, its log also contains the kernel's timestamps of the requests.
    """
    arguments = (
        "--hold",
        hold,
        "--spin",
        spin,
        "--no-stamps",
        *(("--log-queued",) if stamps else ()),
    )
    waits = {"0s": "sleeping", hold: "spinning throughout"}.get(spin, f"spinning {spin}")
    return ServerSpec(
        f"refsrv, {hold}, {waits}", arguments, logs=logs, fresh=True, is_spinning=spin == hold
    )


@contextlib.contextmanager
def running(spec: ServerSpec, placement: Placement) -> Iterator[Server]:
    """Run the server within the block, then read its log."""
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        start = _nginx if spec.name == "nginx" else _refsrv
        process, server = start(spec, Path(directory), placement)
        try:
            yield server
        finally:
            _stop(process)
        if spec.logs:
            server.log.extend(read_log(Path(directory) / "log.csv"))


def read_log(path: Path) -> list[LogEntry]:
    """The log of ``refsrv``, in the order of arrival."""
    with path.open(newline="") as file:
        rows = csv.DictReader(file)
        entries = [
            LogEntry(
                int(row["arrive_ns"]),
                int(row["finish_ns"]),
                _optional(row["write_ns"]),
                _optional(row["queued_ns"]),
            )
            for row in rows
        ]
    return sorted(entries, key=lambda entry: entry.arrive_ns)


def _optional(cell: str) -> int | None:
    return int(cell) if cell else None


def _refsrv(
    spec: ServerSpec, directory: Path, placement: Placement
) -> tuple[subprocess.Popen[bytes], Server]:
    words = [str(_program("refsrv", "make build")), "--listen", "127.0.0.1:0", *spec.arguments]
    if spec.logs:
        words += ["--log", str(directory / "log.csv")]
    process = _start(words, placement, subprocess.PIPE)
    assert process.stdout is not None
    line = _first_line(process.stdout).split()
    if not line:
        _stop(process)
        raise ServerError("refsrv did not report its address; rebuild it (make build)")
    return process, Server(int(line[-1].rpartition(":")[2]), [])


def _nginx(
    spec: ServerSpec, directory: Path, placement: Placement
) -> tuple[subprocess.Popen[bytes], Server]:
    port = _free_port()
    configuration = directory / "nginx.conf"
    configuration.write_text(_NGINX.format(directory=directory, port=port))
    nginx = _program("nginx", "apt-get install nginx-light")
    process = _start(
        [str(nginx), "-p", str(directory), "-c", str(configuration)], placement, subprocess.DEVNULL
    )
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return process, Server(port, [])
        time.sleep(0.02)
    _stop(process)
    raise ServerError("nginx did not start; see its message above")


def _start(words: list[str], placement: Placement, stdout: int) -> subprocess.Popen[bytes]:
    stderr = None if words[0].endswith("nginx") else subprocess.DEVNULL
    return subprocess.Popen(words, stdout=stdout, stderr=stderr, preexec_fn=placement.before_exec())


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _first_line(stream: IO[bytes]) -> str:
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        return stream.readline().decode() if selector.select(_START_S) else ""


def _program(name: str, fix: str) -> Path:
    path = find_program(name)
    if path is None or not os.access(path, os.X_OK):
        raise ServerError(f"{name} is not installed; run: {fix}")
    return path


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
