"""The response of ``hello`` without a Content-Length; shows the cost of a server's framing.

The body is a generator, because a server may use the length of a list with a single element.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

PATH = "/"
EXPECTED_BODY = b"Hello, World!\n"
HEADERS = [("Content-Type", "text/plain; charset=utf-8")]


def _greeting() -> Iterator[bytes]:
    yield EXPECTED_BODY


def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Respond with the greeting, whose end the server must mark."""
    start_response("200 OK", list(HEADERS))
    return _greeting()


if "WSGILOAD_COUNT_FOLDER" in os.environ:  # wsgiload reads the number of calls
    from counted import counted  # type: ignore[import-not-found]  # beside this file, on the server's path

    app = counted(app)
