"""Responds with the request body, by default 1 KiB; shows how a server handles bodies."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

PIECE_BYTES = 65_536

PATH = "/"
METHOD = "POST"
BODY = b"a body that comes back as it was\n" * 31 + b"\n"
EXPECTED_BODY = BODY


def _body(environ: WSGIEnvironment) -> bytes:
    remaining_bytes, pieces = int(environ.get("CONTENT_LENGTH") or 0), []
    while remaining_bytes > 0:
        piece = environ["wsgi.input"].read(min(remaining_bytes, PIECE_BYTES))
        if not piece:
            break
        pieces.append(piece)
        remaining_bytes -= len(piece)
    return b"".join(pieces)


def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Read the whole body, then respond with it."""
    body = _body(environ)
    start_response(
        "200 OK",
        [("Content-Type", "application/octet-stream"), ("Content-Length", str(len(body)))],
    )
    return [body]


if "WSGILOAD_COUNT_FOLDER" in os.environ:  # wsgiload reads the number of calls
    from counted import counted  # type: ignore[import-not-found]  # beside this file, on the server's path

    app = counted(app)
