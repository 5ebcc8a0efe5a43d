"""The check for delays finds servers that leave Nagle's algorithm on."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from wsgiload.loads.request import Request
from wsgiload.serving.check import MAX_DELAYED_RATIO, delayed_ratio

WRITES = (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n", b"0\r\n\r\n")


@contextmanager
def server(*, no_delay: bool, keeps_connections: bool) -> Iterator[tuple[str, int]]:
    """A server that sends each response in three writes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, no_delay)
        thread = threading.Thread(target=_serve, args=(listener, keeps_connections))
        thread.start()
        yield listener.getsockname()
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def _serve(listener: socket.socket, keeps_connections: bool) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            while connection.recv(65536):
                for part in WRITES:
                    connection.sendall(part)
                if not keeps_connections:
                    break


def test_writes_that_wait_for_acknowledgements_are_found() -> None:
    with server(no_delay=False, keeps_connections=True) as address:
        assert delayed_ratio(address, Request("/")) > MAX_DELAYED_RATIO


@pytest.mark.parametrize("keeps_connections", [True, False])
def test_prompt_writes_are_not_delayed(keeps_connections: bool) -> None:
    with server(no_delay=True, keeps_connections=keeps_connections) as address:
        assert delayed_ratio(address, Request("/")) <= MAX_DELAYED_RATIO
