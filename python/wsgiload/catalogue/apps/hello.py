"""The smallest useful app: a few fixed bytes. Measures only the server."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping
    from typing import Any
    from wsgiref.types import StartResponse, WSGIEnvironment

    Message = MutableMapping[str, Any]

PATH = "/"
EXPECTED_BODY = b"Hello, World!\n"
HEADERS = [
    ("Content-Type", "text/plain; charset=utf-8"),
    ("Content-Length", str(len(EXPECTED_BODY))),
]


def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Respond to every request with the greeting."""
    start_response("200 OK", list(HEADERS))
    return [EXPECTED_BODY]


ASGI_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS]


async def asgi_app(
    scope: Message,
    receive: Callable[[], Awaitable[Message]],
    send: Callable[[Message], Awaitable[None]],
) -> None:
    """The ASGI version of ``app``."""
    if scope["type"] != "http":  # no lifespan support
        raise NotImplementedError(scope["type"])
    await send({"type": "http.response.start", "status": 200, "headers": list(ASGI_HEADERS)})
    await send({"type": "http.response.body", "body": EXPECTED_BODY})


if "WSGILOAD_COUNT_FOLDER" in os.environ:  # wsgiload reads the number of calls
    from counted import counted, counted_asgi  # type: ignore[import-not-found]  # beside this file, on the server's path

    app, asgi_app = counted(app), counted_asgi(asgi_app)
