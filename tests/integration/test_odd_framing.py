"""Responses with unusual framing: what HTTP allows is correct, and anything else is rejected."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

import wsgiload

OK = b"HTTP/1.1 200 OK\r\n"
HELLO = b"Content-Length: 5\r\n\r\nhello"
CHUNKED = b"5\r\nhello\r\n0\r\n\r\n"
FIELDS_150 = b"".join(b"X-H%d: v\r\n" % number for number in range(150))

# The response, and whether the server closes the connection after it.
ACCEPTED: dict[str, tuple[bytes, bool]] = {
    "close10": (b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nhello", True),
    "keep10": (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n" + HELLO, False),
    "close11": (OK + b"\r\nhello", True),
    "fold": (OK + b"X-Long: one\r\n two\r\n\tthree\r\n" + HELLO, False),
    "latin1": (b"HTTP/1.1 200 Tr\xe8s bien\r\nX-Name: caf\xe9\r\n" + HELLO, False),
    "noreason": (b"HTTP/1.1 200\r\n" + HELLO, False),
    "barelf": (b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", False),
    "many": (OK + FIELDS_150 + HELLO, False),
    "wide": (OK + b"Set-Cookie: a=" + b"x" * 70_000 + b"\r\n" + HELLO, False),
    "trailers": (
        OK + b"Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
        b'5;name="v"\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n',
        False,
    ),
    "twolengths": (OK + b"Content-Length: 5\r\n" + HELLO, False),
    "lengthlist": (OK + b"Content-Length: 5, 5\r\n\r\nhello", False),
    "tecl": (
        OK + b"Content-Length: 3\r\nTransfer-Encoding: Chunked\r\n\r\n" + CHUNKED,
        False,
    ),
    "leadcrlf": (OK + HELLO + b"\r\n", False),
    "sayclose": (OK + b"Connection: foo, Close\r\n" + HELLO, True),
}
REJECTED: dict[str, tuple[bytes, bool]] = {
    "spacecolon": (OK + b"Content-Length : 5\r\n\r\nhello", False),
    "http09": (b"hello", True),
    "lower": (b"http/1.1 200 OK\r\n" + HELLO, False),
}


def _respond(connection: socket.socket) -> None:
    with connection, suppress(OSError):
        received = b""
        while more := connection.recv(65_536):
            received += more
            while b"\r\n\r\n" in received:
                head, _, received = received.partition(b"\r\n\r\n")
                name = head.split(b" ")[1].decode().lstrip("/")
                response, closes = (ACCEPTED | REJECTED)[name]
                connection.sendall(response)
                if closes:
                    return


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    threading.Thread(target=_respond, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        # Wakes the thread that waits for a connection.
        listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_http_allows_is_a_correct_response(url: str, name: str) -> None:
    outcomes = wsgiload.load(f"{url}/{name}", rate=50, duration=0.5).outcomes
    assert outcomes["ok"] == outcomes["scheduled"] > 0, outcomes


@pytest.mark.parametrize("name", REJECTED)
def test_what_is_no_response_is_rejected(url: str, name: str) -> None:
    outcomes = wsgiload.load(f"{url}/{name}", rate=50, duration=0.5).outcomes
    assert outcomes["bad_body"] == outcomes["scheduled"] > 0, outcomes
