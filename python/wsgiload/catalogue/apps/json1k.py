"""A JSON body of exactly 1024 bytes, encoded for each request as in an API."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

SIZE_BYTES = 1024


def _document() -> dict[str, object]:
    """Sixteen small records, and padding up to the size."""
    records = [
        {"id": number, "name": f"item-{number:02d}", "price": number * 1.25} for number in range(16)
    ]
    document: dict[str, object] = {"items": records, "padding": ""}
    document["padding"] = "x" * (SIZE_BYTES - len(json.dumps(document)))
    return document


PATH = "/"
DOCUMENT = _document()
EXPECTED_BODY = json.dumps(DOCUMENT).encode()


def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Encode the document and respond with it."""
    body = json.dumps(DOCUMENT).encode()
    start_response(
        "200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    )
    return [body]


if "WSGILOAD_COUNT_FOLDER" in os.environ:  # wsgiload reads the number of calls
    from counted import counted  # type: ignore[import-not-found]  # beside this file, on the server's path

    app = counted(app)
