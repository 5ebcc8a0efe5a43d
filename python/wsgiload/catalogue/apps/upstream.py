"""Fetches 1 KiB over a new connection from a server that responds after 20 ms, like a gateway.

wsgiload starts that server (``upstream_source.py``), unless WSGILOAD_UPSTREAM names another one.
"""

from __future__ import annotations

import http.client
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

# The address, as host:port.
UPSTREAM_VARIABLE = "WSGILOAD_UPSTREAM"
TIMEOUT_S = 10.0

PATH = "/"
EXPECTED_BODY = b"0123456789abcde\n" * 64
UPSTREAM_PROGRAM = "upstream_source.py"


def fetch() -> tuple[int, bytes]:
    """Status and body of the other server's response."""
    connection = http.client.HTTPConnection(os.environ[UPSTREAM_VARIABLE], timeout=TIMEOUT_S)
    try:
        connection.request("GET", "/")
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Fetch, then respond with the same body."""
    status, body = fetch()
    line = "200 OK" if status == 200 else "502 Bad Gateway"
    start_response(
        line, [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))]
    )
    return [body]


if "WSGILOAD_COUNT_FOLDER" in os.environ:  # wsgiload reads the number of calls
    from counted import counted  # type: ignore[import-not-found]  # beside this file, on the server's path

    app = counted(app)
