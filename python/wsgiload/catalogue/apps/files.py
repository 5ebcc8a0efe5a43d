"""Sleeps 100 ms, then writes a temporary file with 10,000 system calls: waiting, kernel and disk.

The app of the Circus comparison of 2012. Its loop multiplied constants, which the compiler folds,
so here the loop is empty. Its body contained the elapsed time; here, the time is in a header, so
the body is fixed and can be checked.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

ROUNDS = 10_000
SLEEP_S = 0.100
PIECE = b"0123456789"

PATH = "/"
EXPECTED_BODY = b"slept 100 ms, wrote 100000 bytes\n"
HEADERS = [
    ("Content-Type", "text/plain; charset=utf-8"),
    ("Content-Length", str(len(EXPECTED_BODY))),
]


def write_file() -> int:
    """Write, close and remove a temporary file; returns the number of bytes written."""
    descriptor, path = tempfile.mkstemp()
    try:
        return sum(os.write(descriptor, PIECE) for _ in range(ROUNDS))
    finally:
        os.close(descriptor)
        Path(path).unlink()


def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Loop, sleep, write, then respond."""
    began_s = time.perf_counter()
    for _ in range(ROUNDS):
        pass
    time.sleep(SLEEP_S)
    written_bytes = write_file()
    took_ms = (time.perf_counter() - began_s) * 1_000

    start_response("200 OK", [*HEADERS, ("Server-Timing", f"app;dur={took_ms:.1f}")])
    return [EXPECTED_BODY if written_bytes == ROUNDS * len(PIECE) else b"wrote too little\n"]


if "WSGILOAD_COUNT_FOLDER" in os.environ:  # wsgiload reads the number of calls
    from counted import counted  # type: ignore[import-not-found]  # beside this file, on the server's path

    app = counted(app)
