"""A probe sends the bytes of the load's first request, so a server answers both alike."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

import wsgiload
from wsgiload.loads.request import Request
from wsgiload.serving.readiness import ask

RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def first_request(send: Callable[[int], object]) -> bytes:
    """The bytes of the first request to a server, whose port is replaced."""
    received: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        received.append(_request(connection))
                        connection.sendall(RESPONSE)

        serving = threading.Thread(target=serve)
        serving.start()
        send(port)
        listener.shutdown(socket.SHUT_RDWR)
        serving.join()
    return received[0].replace(str(port).encode(), b"PORT")


def _request(connection: socket.socket) -> bytes:
    """One request with its body, which may arrive separately."""
    data = connection.recv(65_536)
    length = re.search(rb"content-length: (\d+)", data)
    while len(data.partition(b"\r\n\r\n")[2]) < int(length[1] if length else 0):
        data += connection.recv(65_536)
    return data


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"path": "/a?q=%20x"},
        {"method": "POST"},
        {"method": "PUT"},
        {"method": "DELETE"},
        {"method": "POST", "body": b"hello"},
        {"method": "PUT", "body": b""},
        {"method": "GET", "body": b""},
        {"headers": (("Host", "shop.example"), ("X-A", "1"), ("Accept", "*/*"), ("x-a", "2"))},
        {"method": "POST", "headers": (("Content-Length", "0"), ("Cookie", "sid=1"))},
    ],
    ids=str,
)
def test_the_probe_sends_what_the_load_sends(fields: dict[str, Any]) -> None:
    probed = first_request(lambda port: ask(port, Request(**fields)))

    options = {name: value for name, value in fields.items() if name != "path"}
    request = wsgiload.RequestOptions(**options)
    path = fields.get("path", "/")
    loaded = first_request(
        lambda port: wsgiload.load(
            f"http://127.0.0.1:{port}{path}", rate=200, duration=0.2, request=request
        )
    )
    assert probed == loaded


def test_a_post_without_a_body_has_a_length() -> None:
    probed = first_request(lambda port: ask(port, Request(method="POST")))
    assert probed == b"POST / HTTP/1.1\r\nhost: 127.0.0.1:PORT\r\ncontent-length: 0\r\n\r\n"
