"""Checks whether a server passes large request heads, and the header fields of a proxy, to the
app."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from dataclasses import dataclass

from wsgiload.serving.exchange import Response

HEAD_BYTES = 32 << 10
# The size of the request line and the other fields, with the longest port.
_REST_BYTES = len("GET /cookie HTTP/1.1\r\nHost: 127.0.0.1:65535\r\nCookie: \r\n\r\n")
_START = "session="
COOKIE = ("Cookie", _START + "a" * (HEAD_BYTES - _REST_BYTES - len(_START)))
FORWARDED = (
    ("X-Forwarded-Proto", "https"),
    ("X-Forwarded-For", "192.0.2.7"),
    ("X-Forwarded-Host", "shop.example"),
)

# Sends a request for a path with these header fields.
Send = Callable[[str, tuple[tuple[str, str], ...]], Response]


def large_head_fault(send: Send) -> str | None:
    """What is wrong with the response to a head of 32 KiB; None if the app receives all of it."""
    try:
        response = send("/cookie", (COOKIE,))
    except (OSError, http.client.HTTPException) as error:
        return f"it closed the connection on a request head of 32 KiB ({type(error).__name__})"
    if response.status != 200:
        return f"it rejected a request head of 32 KiB with status {response.status}"
    if response.body != COOKIE[1].encode():
        received, sent = len(response.body), len(COOKIE[1])
        return f"only {received:,} of the {sent:,} bytes of a cookie reached the app"
    return None


@dataclass(frozen=True, slots=True)
class Forwarding:
    """What an app receives of a request that came through a proxy on this host."""

    scheme: str
    lost: tuple[str, ...]


def forwarding(send: Send) -> Forwarding:
    """The scheme that the app sees, and the forwarded fields that it does not receive as sent."""
    text = send("/forwarded", FORWARDED).body.decode(errors="replace")
    scheme, *arrived = text.split("\n")
    arrived += [""] * (len(FORWARDED) - len(arrived))
    lost = (
        name
        for (name, value), received in zip(FORWARDED, arrived, strict=False)
        if value != received
    )
    return Forwarding(scheme, tuple(lost))
