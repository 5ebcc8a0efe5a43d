"""The paths of the app ``conformance`` for ASGI servers. Not meant to be measured."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

import conformance  # type: ignore[import-not-found]  # beside this file, on the server's path

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

TEXT = (b"content-type", b"text/plain; charset=utf-8")
FORWARDED_FIELDS = (b"x-forwarded-proto", b"x-forwarded-for", b"x-forwarded-host")


async def _send(send: Send, body: bytes, status: int = 200) -> None:
    headers = [TEXT, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def greet(scope: Message, receive: Receive, send: Send) -> None:
    """The response of the app ``hello``."""
    await _send(send, conformance.EXPECTED_BODY)


async def worker(scope: Message, receive: Receive, send: Send) -> None:
    """The process id, after a busy-wait."""
    until = time.monotonic_ns() + conformance.BUSY_NS
    while time.monotonic_ns() < until:
        pass
    await _send(send, str(os.getpid()).encode())


async def stream(scope: Message, receive: Receive, send: Send) -> None:
    """Three chunks without a Content-Length."""
    await send({"type": "http.response.start", "status": 200, "headers": [TEXT]})
    for piece in conformance.STREAM:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body"})


async def echo(scope: Message, receive: Receive, send: Send) -> None:
    """The body of the request."""
    parts, is_more = [], True
    while is_more:
        message = await receive()
        parts.append(message.get("body", b""))
        is_more = message.get("more_body", False)
    await _send(send, b"".join(parts))


async def missing(scope: Message, receive: Receive, send: Send) -> None:
    """An error response with a body."""
    await _send(send, conformance.MISSING_BODY, 404)


async def broken(scope: Message, receive: Receive, send: Send) -> None:
    """A server-error response with a body."""
    await _send(send, conformance.BROKEN_BODY, 500)


async def conforms(scope: Message, receive: Receive, send: Send) -> None:
    """The violations in the scope of the request."""
    wrong = "; ".join(violations(scope))
    await _send(
        send, f"violates ASGI: {wrong}\n".encode() if wrong else conformance.CONFORMING_BODY
    )


def violations(scope: Message) -> Iterable[str]:
    """The keys of a scope that violate the specification
    (https://asgi.readthedocs.io/en/latest/specs/www.html#http-connection-scope)."""
    fields = scope.get("headers")
    is_valid = {
        "asgi": str(scope.get("asgi", {}).get("version", "")).startswith("3."),
        "http_version": scope.get("http_version") == "1.1",
        "method": scope.get("method") == "GET",
        "scheme": scope.get("scheme", "http") == "http",
        "path": scope.get("path") == "/conforms",
        "raw_path": scope.get("raw_path") in (None, b"/conforms"),
        "query_string": scope.get("query_string") == b"",
        "root_path": scope.get("root_path", "") == "",
        "headers": _are_fields(fields) and b"host" in [name for name, _ in fields or ()],
    }
    for key, holds in is_valid.items():
        if not holds:
            yield f"scope[{key!r}] is {scope.get(key)!r}"
    for key in ("client", "server"):
        if not _is_address(scope.get(key)):
            yield f"scope[{key!r}] is not a (str, int) pair"


def _are_fields(fields: Iterable[tuple[bytes, bytes]] | None) -> bool:
    """Whether the fields are pairs of byte strings with lower-case names."""
    return fields is not None and all(
        type(name) is type(value) is bytes and name == name.lower() for name, value in fields
    )


def _is_address(address: Any) -> bool:
    """Whether the value is None, or a host and a port."""
    return address is None or [type(part) for part in address] == [str, int]


async def hold(scope: Message, receive: Receive, send: Send) -> None:
    """Wait, then respond with the times of entering and leaving the app."""
    entered_ns = time.monotonic_ns()
    await asyncio.sleep(conformance.HOLD_S)
    await _send(send, f"{entered_ns} {time.monotonic_ns()}".encode())


async def cookie(scope: Message, receive: Receive, send: Send) -> None:
    """The cookie of the request."""
    await _send(send, dict(scope["headers"]).get(b"cookie", b""))


async def forwarded(scope: Message, receive: Receive, send: Send) -> None:
    """The scheme, and the header fields of a proxy, one per line."""
    fields = dict(scope["headers"])
    lines = [scope["scheme"].encode(), *(fields.get(name, b"") for name in FORWARDED_FIELDS)]
    await _send(send, b"\n".join(lines))


ROUTES = {
    "/worker": worker,
    "/stream": stream,
    "/echo": echo,
    "/missing": missing,
    "/broken": broken,
    "/conforms": conforms,
    "/hold": hold,
    "/cookie": cookie,
    "/forwarded": forwarded,
}


async def lifespan(receive: Receive, send: Send) -> None:
    """Acknowledge the lifespan events until shutdown."""
    message: Message = {}
    while message.get("type") != "lifespan.shutdown":
        message = await receive()
        await send({"type": f"{message['type']}.complete"})


async def app(scope: Message, receive: Receive, send: Send) -> None:
    """One property per path; other paths return the greeting."""
    if scope["type"] == "lifespan":
        await lifespan(receive, send)
    else:
        await ROUTES.get(scope["path"], greet)(scope, receive, send)
