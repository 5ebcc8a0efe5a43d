"""The app for ``wsgiload servers check``, with one path per property. Not meant to be measured."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING
from wsgiref.validate import validator

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

PATH = "/"
EXPECTED_BODY = b"Hello, World!\n"
STREAM = (b"one\n", b"two\n", b"three\n")
MISSING_BODY = b"not here\n"
BROKEN_BODY = b"broken as asked\n"
CONFORMING_BODY = b"the environ conforms\n"
BUSY_NS = 20_000_000
HOLD_S = 0.5
CHUNK_BYTES = 65_536
FORWARDED_VARIABLES = ("HTTP_X_FORWARDED_PROTO", "HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_HOST")


def _send(start_response: StartResponse, body: bytes, status: str = "200 OK") -> list[bytes]:
    start_response(
        status, [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))]
    )
    return [body]


def greet(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """The response of the app ``hello``."""
    return _send(start_response, EXPECTED_BODY)


def worker(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """The process id. Busy-waits first, so one worker cannot take all concurrent requests."""
    until = time.monotonic_ns() + BUSY_NS
    while time.monotonic_ns() < until:
        pass
    return _send(start_response, str(os.getpid()).encode())


def stream(environ: WSGIEnvironment, start_response: StartResponse) -> Iterator[bytes]:
    """Three chunks without a Content-Length, so the server must mark the end of the body."""
    start_response("200 OK", [("Content-Type", "text/plain; charset=utf-8")])
    yield from STREAM


def echo(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """The body of the request."""
    remaining, parts = int(environ.get("CONTENT_LENGTH") or 0), []
    while remaining > 0:
        part = environ["wsgi.input"].read(min(remaining, CHUNK_BYTES))
        if not part:
            break
        parts.append(part)
        remaining -= len(part)
    return _send(start_response, b"".join(parts))


def missing(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """An error response with a body."""
    return _send(start_response, MISSING_BODY, "404 Not Found")


def broken(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """A server-error response with a body."""
    return _send(start_response, BROKEN_BODY, "500 Internal Server Error")


def conforms(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """The result of the standard library's validator for the environ, read and closed as PEP 3333
    requires."""

    def inner(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        environ["wsgi.input"].read(0)
        return _send(start_response, CONFORMING_BODY)

    try:
        return validator(inner)(environ, start_response)
    except (
        AssertionError,
        KeyError,
    ) as error:  # KeyError: the validator's message needs the missing key
        return _send(start_response, f"violates PEP 3333: {error}\n".encode())


def hold(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Wait, then respond with the times of entering and leaving the app. All processes share the
    clock."""
    entered_ns = time.monotonic_ns()
    time.sleep(HOLD_S)
    return _send(start_response, f"{entered_ns} {time.monotonic_ns()}".encode())


def cookie(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """The cookie of the request."""
    return _send(start_response, environ.get("HTTP_COOKIE", "").encode("latin-1"))


def forwarded(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """The scheme, and the header fields of a proxy, one per line."""
    lines = [environ["wsgi.url_scheme"], *(environ.get(name, "") for name in FORWARDED_VARIABLES)]
    return _send(start_response, "\n".join(lines).encode("latin-1"))


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


def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """One property per path; other paths return the greeting."""
    return ROUTES.get(environ.get("PATH_INFO", ""), greet)(environ, start_response)
