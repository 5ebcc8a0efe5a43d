"""An event channel: parses the query, selects the newer events, and encodes 0.9 KiB of JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

# Events of about 120 bytes; a request reads eight of them.
CHANNEL = tuple(
    {
        "id": number,
        "type": "position",
        "user": f"user-{number % 4}",
        "data": {"x": number * 1.25, "y": number * 0.75, "text": "moved to another place"},
    }
    for number in range(1, 33)
)
READ_AFTER = 24

PATH = f"/channels/1/events?since={READ_AFTER}"


def body_after(number: int) -> bytes:
    """The events after this one, as JSON."""
    return json.dumps({"events": CHANNEL[number:]}).encode()


EXPECTED_BODY = body_after(READ_AFTER)


def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Respond with the events that the query requests, by default all of them."""
    query = parse_qs(environ.get("QUERY_STRING", ""))
    body = body_after(int(query.get("since", ["0"])[0]))
    start_response(
        "200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    )
    return [body]


if "WSGILOAD_COUNT_FOLDER" in os.environ:  # wsgiload reads the number of calls
    from counted import counted  # type: ignore[import-not-found]  # beside this file, on the server's path

    app = counted(app)
