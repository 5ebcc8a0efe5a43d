"""Servers that misbehave as published comparisons have met it. Each runs in this process, on a free
port of the loopback interface."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok"
BACKLOG = 128
Serve = Callable[[socket.socket], None]


def _request(connection: socket.socket) -> bool:
    """Read one request without a body; False at the end."""
    data = b""
    while not data.endswith(b"\r\n\r\n"):
        received = connection.recv(4096)
        if not received:
            return False
        data += received
    return True


def _serve_all(connection: socket.socket) -> None:
    with suppress(OSError):
        while _request(connection):
            time.sleep(0.005)
            connection.sendall(RESPONSE)


@contextmanager
def _listening(accept: Callable[[socket.socket, list[socket.socket]], None]) -> Iterator[str]:
    """The URL of a socket whose connections this function accepts, until it is closed."""
    opened: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0), backlog=BACKLOG) as listener:
        port = listener.getsockname()[1]

        def run() -> None:
            with suppress(OSError):
                accept(listener, opened)

        accepting = threading.Thread(target=run, daemon=True)
        accepting.start()
        try:
            yield f"http://127.0.0.1:{port}/"
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            # A thread that waits for one of its connections to end can accept another one meanwhile.
            _shut_down(opened)
            accepting.join()
            _shut_down(opened)
            for connection in opened:
                connection.close()


def _shut_down(connections: list[socket.socket]) -> None:
    """Whoever reads from them or writes to them ends."""
    for connection in list(connections):
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


def _in_threads(serve: Serve) -> Callable[[socket.socket, list[socket.socket]], None]:
    def accept(listener: socket.socket, opened: list[socket.socket]) -> None:
        while True:
            connection, _ = listener.accept()
            opened.append(connection)
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    return accept


@contextmanager
def serving_few_connections(threads: int) -> Iterator[str]:
    """So many threads, each of which keeps its connection to its end: all other connections
    starve."""
    free = threading.Semaphore(threads)

    def accept(listener: socket.socket, opened: list[socket.socket]) -> None:
        while True:
            free.acquire()
            connection, _ = listener.accept()
            opened.append(connection)

            def serve(own: socket.socket) -> None:
                _serve_all(own)
                free.release()

            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with _listening(accept) as url:
        yield url


@contextmanager
def serving_one_request_each() -> Iterator[str]:
    """Each connection gets one response; it stays open and gets no other."""

    def serve(connection: socket.socket) -> None:
        with suppress(OSError):
            if _request(connection):
                connection.sendall(RESPONSE)

    with _listening(_in_threads(serve)) as url:
        yield url


@contextmanager
def refusing_after(connections: int) -> Iterator[str]:
    """So many connections are accepted, and all others refused."""

    def accept(listener: socket.socket, opened: list[socket.socket]) -> None:
        for _ in range(connections):
            connection, _ = listener.accept()
            opened.append(connection)
            threading.Thread(target=_serve_all, args=(connection,), daemon=True).start()
        listener.close()

    with _listening(accept) as url:
        yield url
