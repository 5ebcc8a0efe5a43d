"""Runs one command on every faulty version of one file from elsewhere, in a process of its own.

``python -m tests.unit.foreign_matrix NAME FOLDER`` prints the outcome of each fault as JSON.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from wsgiload import cli, foreign_files
from wsgiload.documents.codec import encode_bytes
from wsgiload.foreign_files import FileKind
from wsgiload.results.manifest import NAME, Digests

from .capacity_fixture import write_search
from .report_fixture import write_run

SECRET = "the-text-of-another-file"
DEPTH = 5_000
_URL = "http://127.0.0.1:9/"
_WRK = """\
Running 10s test @ http://127.0.0.1:8000/
  1 threads and 100 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency    97.50ms    2.10ms 110.20ms   90.00%
    Req/Sec   102.00     10.00   120.00     80.00%
  Latency Distribution
     50%   97.20ms
     99%  109.10ms
  10240 requests in 10.00s, 1.52MB read
Requests/sec:   1024.00
Transfer/sec:    155.00KB
"""
_HAR = '{"log": {"entries": [{"request": {"method": "GET", "url": "http://h/"}}]}}'
_API = '{"openapi": "3.1.0", "info": {}, "paths": {"/": {"get": {}}}}'
_LOG = '127.0.0.1 - - [10/Oct/2025:13:55:36 +0000] "GET / HTTP/1.1" 200 1\n'


@dataclass(frozen=True)
class Use:
    """A file and the command that reads it. Without ``content``, it is part of a run directory."""

    kind: FileKind
    path: str
    arguments: tuple[str, ...]
    content: str | None = None
    # JSON or TOML up to a value, which may be nested.
    before_value: str = '{"x":'


_REPORT = ("report", "run")
_LOAD = ("load", _URL, "--dry-run", "--json", "-")
USES = {
    "summary": Use(foreign_files.SUMMARY, "run/summary.json", _REPORT),
    "run": Use(foreign_files.RUN_INFO, "run/run.json", _REPORT),
    "load": Use(foreign_files.LOAD_REPORT, "run/load/waitress@1000#1.json", _REPORT),
    "capacity": Use(foreign_files.CAPACITY, "run/capacity.json", _REPORT),
    "manifest": Use(foreign_files.MANIFEST, f"run/{NAME}", _REPORT),
    "table": Use(foreign_files.TABLE, "run/resources.csv", _REPORT),
    "log": Use(foreign_files.RUN_FILE, "run/server/waitress@1000#1.log", _REPORT),
    "audit": Use(foreign_files.OTHER_RESULT, "wrk.txt", ("audit", "wrk.txt"), _WRK),
    "har": Use(foreign_files.HAR, "a.har", ("import", "har", "a.har"), _HAR),
    "openapi": Use(foreign_files.OPENAPI, "a.json", ("import", "openapi", "a.json"), _API),
    "access-log": Use(
        foreign_files.RECORDING, "a.log", ("import", "access-log", "a.log"), _LOG
    ),
    "trace": Use(foreign_files.RECORDING, "a.trace", (*_LOAD, "--replay", "a.trace"), "0\n1\n"),
    "body": Use(foreign_files.BODY, "body", (*_LOAD, "--body-file", "body"), "x"),
    "headers": Use(foreign_files.HEADERS, "fields", (*_LOAD, "-H", "@fields"), "X: 1\n"),
    "targets": Use(foreign_files.TARGETS, "a.targets", (*_LOAD, "--targets", "a.targets"), "GET /\n"),
    "sessions": Use(
        foreign_files.SESSIONS, "a", (*_LOAD, "-R", "10", "--sessions", "a"), "[buy]\nGET /\n"
    ),
    "variables": Use(
        foreign_files.VARIABLES,
        "a.env",
        ("sweep", "--dry-run", "--json", "-", "--servers", "wsgiref", "--rates", "10", "--env-file", "a.env"),
        "A=1\n",
    ),
    "wsgiload.toml": Use(
        foreign_files.CONFIGURATION, "wsgiload.toml", _LOAD, "timeout = '9s'\n", "x ="
    ),
    "pyproject.toml": Use(
        foreign_files.CONFIGURATION, "pyproject.toml", _LOAD, "[project]\nname = 'x'\n", "x ="
    ),
    "experiment": Use(
        foreign_files.CONFIGURATION,
        "a.toml",
        ("run", "a.toml", "--dry-run", "--json", "-", "--servers", "wsgiref"),
        "rates = [10]\n",
        "x =",
    ),
}  # fmt: skip

Fault = Callable[[Use, Path], None]


def _move(to: str) -> Fault:
    def plant(use: Use, path: Path) -> None:
        target = Path(to).absolute()
        path.rename(target)
        path.symlink_to(target)

    return plant


def _link(to: str) -> Fault:
    def plant(use: Use, path: Path) -> None:
        path.unlink()
        path.symlink_to(to.format(path.name))

    return plant


def _socket(use: Use, path: Path) -> None:
    path.unlink()
    with socket.socket(socket.AF_UNIX) as one, contextlib.chdir(path.parent):
        one.bind(path.name)


def _fifo(use: Use, path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _device(use: Use, path: Path) -> None:
    path.unlink()
    try:
        os.mknod(path, 0o20644, os.makedev(1, 5))  # like /dev/zero
    except PermissionError:
        path.symlink_to("/dev/zero")


def _directory(use: Use, path: Path) -> None:
    path.unlink()
    path.mkdir()


def _huge(use: Use, path: Path) -> None:
    os.truncate(path, use.kind.max_bytes + 1)


def _endless_line(use: Use, path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"1" * ((use.kind.max_line_bytes or 0) + 1))


def _many_rows(use: Use, path: Path) -> None:
    if use.kind.max_lines is not None:
        # An empty line would be damage.
        line = path.read_bytes().splitlines(keepends=True)[-1] if use.content is None else b"\n"
        with path.open("ab") as file:
            file.write(line * use.kind.max_lines)
        return
    document = json.loads(path.read_bytes())
    cell = json.dumps(document["cells"][0])
    assert use.kind.max_entries is not None
    cells = (cell.replace("#1", f"#{run}") for run in range(use.kind.max_entries + 1))
    path.write_text(
        json.dumps(document | {"cells": []}).replace('"cells": []', f'"cells": [{",".join(cells)}]')
    )


def _deep(use: Use, path: Path) -> None:
    path.write_text(use.before_value + "[" * DEPTH)


def _unreadable(use: Use, path: Path) -> None:
    path.chmod(0)


def _nothing(use: Use, path: Path) -> None:
    pass


FAULTS: dict[str, Fault] = {
    "none": _nothing,
    "link inside": _move("run/moved"),
    "link outside": _move("outside/moved"),
    "dangling": _link("nowhere"),
    "loop": _link("{}"),
    "fifo": _fifo,
    "socket": _socket,
    "device": _device,
    "directory": _directory,
    "huge": _huge,
    "endless line": _endless_line,
    "too many rows": _many_rows,
    "too deep": _deep,
    "unreadable": _unreadable,
    "changing": _nothing,
}


def faults_of(use: Use) -> Iterator[str]:
    """The faults that this file can have: not every kind has lines, entries or nested values."""
    kind = use.kind
    without = {
        "endless line": kind.max_line_bytes is None,
        "too many rows": kind.max_lines is None and kind.max_entries is None,
        "too deep": not kind.is_nested,
    }
    return (fault for fault in FAULTS if not without.get(fault))


def prepare(use: Use) -> Path:
    """The working directory with the intact file, and a folder outside of it."""
    Path("outside").mkdir()
    Path("outside", "secret").write_text(SECRET)
    if not use.path.startswith("run/"):
        Path("run").mkdir()
    else:
        shutil.copytree("../intact", "run")
    path = Path(use.path)
    if use.content is not None:
        path.write_text(use.content)
    return path


def _write_run(use: Use, run: Path) -> None:
    if use.kind is foreign_files.CAPACITY:
        write_search(run, ("waitress",))
    else:
        write_run(run)
    (run / "server").mkdir(exist_ok=True)
    (run / "server" / "waitress@1000#1.log").write_text("started\n")
    digests = Digests()
    for path in sorted(run.rglob("*")):
        if path.is_file():
            digests.take(run, str(path.relative_to(run)))
    (run / NAME).write_bytes(encode_bytes(digests.manifest()))


@contextlib.contextmanager
def changing(path: Path) -> Iterator[None]:
    """Cuts off the end of the file after its size was read."""
    state = foreign_files._state

    def changed(file: object) -> tuple[int, int]:
        before = state(file)  # type: ignore[arg-type]
        if os.fstat(file.fileno()).st_ino == path.stat().st_ino:  # type: ignore[attr-defined]
            os.truncate(path, before[0] - 1)
        return before

    foreign_files._state = changed
    try:
        yield
    finally:
        foreign_files._state = state


def outcome(use: Use, fault: str) -> dict[str, object]:
    """Run the command on the file with this fault."""
    path = prepare(use)
    FAULTS[fault](use, path)
    output, errors = io.TextIOWrapper(io.BytesIO()), io.StringIO()
    begin_s = time.monotonic()
    change = changing(path) if fault == "changing" else contextlib.nullcontext()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors), change:
        code = cli.run(list(use.arguments))
    return {
        "code": code,
        "errors": errors.getvalue(),
        "seconds": time.monotonic() - begin_s,
        "peak_bytes": peak_bytes(),
    }


def peak_bytes() -> int:
    """The largest memory use of this process so far."""
    match = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert match is not None
    return int(match[1]) << 10


def main(name: str, folder: str) -> None:
    use = USES[name]
    foreign_files._WRITER_MS = 500  # so that all kinds together do not take a minute
    outcomes = {}
    if use.content is None:
        _write_run(use, Path(folder, "intact"))
    for fault in faults_of(use):
        os.chdir(folder)
        place = Path(fault.replace(" ", "-"))
        place.mkdir()
        os.chdir(place)
        outcomes[fault] = outcome(use, fault)
        if Path("outside/secret").read_text() != SECRET:
            outcomes[fault]["errors"] = "a file outside was written"
        os.chdir(folder)
        shutil.rmtree(place)
    sys.stdout.write(json.dumps(outcomes))


if __name__ == "__main__":
    main(*sys.argv[1:])
