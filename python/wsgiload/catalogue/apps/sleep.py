"""Waits 10 ms, as for a database; shows how many requests a server handles at once."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

SLEEP_S = 0.010

PATH = "/"
EXPECTED_BODY = b"slept 10 ms\n"
HEADERS = [
    ("Content-Type", "text/plain; charset=utf-8"),
    ("Content-Length", str(len(EXPECTED_BODY))),
]


def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Sleep, then respond. ``time.sleep`` is looked up at each call, so a monkey-patched
    version yields."""
    time.sleep(SLEEP_S)
    start_response("200 OK", list(HEADERS))
    return [EXPECTED_BODY]


if "WSGILOAD_COUNT_FOLDER" in os.environ:  # wsgiload reads the number of calls
    from counted import counted  # type: ignore[import-not-found]  # beside this file, on the server's path

    app = counted(app)
