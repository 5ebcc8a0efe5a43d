"""Two bytes, ``OK``, with a Content-Length: the app of the comparison of 2016."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

PATH = "/"
EXPECTED_BODY = b"OK"
HEADERS = [("Content-Type", "text/plain"), ("Content-Length", str(len(EXPECTED_BODY)))]


def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Respond OK to every request."""
    start_response("200 OK", list(HEADERS))
    return [EXPECTED_BODY]


if "WSGILOAD_COUNT_FOLDER" in os.environ:  # wsgiload reads the number of calls
    from counted import counted  # type: ignore[import-not-found]  # beside this file, on the server's path

    app = counted(app)
