"""Servers that misbehave like those in published comparisons. Each runs in this process, on a free
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
    """Read one request without a body; False at the end of the connection."""
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
    """Run ``accept`` in a thread on a listening socket; yields the URL."""
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
            # The end of a connection can make the thread accept another one, hence twice.
            _shut_down(opened)
            accepting.join()
            _shut_down(opened)
            for connection in opened:
                connection.close()


def _shut_down(connections: list[socket.socket]) -> None:
    """End the threads that read from these connections or write to them."""
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
    """Serve each connection in one of ``threads`` threads until it closes: all others starve."""
    free = threading.Semaphore(threads)

    def accept(listener: socket.socket, opened: list[socket.socket]) -> None:
        while True:
            free.acquire()
            connection, _ = listener.accept()
            opened.append(connection)

            def serve(accepted: socket.socket) -> None:
                _serve_all(accepted)
                free.release()

            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with _listening(accept) as url:
        yield url


@contextmanager
def serving_one_request_each() -> Iterator[str]:
    """Respond once per connection, and keep it open without further responses."""

    def serve(connection: socket.socket) -> None:
        with suppress(OSError):
            if _request(connection):
                connection.sendall(RESPONSE)

    with _listening(_in_threads(serve)) as url:
        yield url


@contextmanager
def refusing_after(connections: int) -> Iterator[str]:
    """Accept this many connections and refuse all others."""

    def accept(listener: socket.socket, opened: list[socket.socket]) -> None:
        for _ in range(connections):
            connection, _ = listener.accept()
            opened.append(connection)
            threading.Thread(target=_serve_all, args=(connection,), daemon=True).start()
        listener.close()

    with _listening(accept) as url:
        yield url
