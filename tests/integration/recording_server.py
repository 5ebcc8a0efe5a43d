"""A server that records the requests of every connection, to compare clients."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections import Counter
from dataclasses import dataclass
from types import TracebackType
from typing import BinaryIO, Self

BODY = b"recorded"


@dataclass(frozen=True)
class Received:
    """A request; its header fields have lower-case names and are sorted by name."""

    method: str
    target: str
    version: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def has_connection(self, option: str) -> bool:
        """Whether the Connection field has this value."""
        return dict(self.headers).get("connection", "").lower() == option

    @property
    def is_last(self) -> bool:
        """Whether the connection closes after this request, by the rules of its HTTP version."""
        if self.version == "HTTP/1.0":
            return not self.has_connection("keep-alive")
        return self.has_connection("close")


class RecordingServer(socketserver.ThreadingTCPServer):
    """Responds to every request with 200, and keeps connections alive if the client asks for it."""

    daemon_threads = True
    request_queue_size = 1024

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self._lock = threading.Lock()
        self._connections: list[list[Received]] = []
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def port(self) -> int:
        """The port on 127.0.0.1."""
        port: int = self.server_address[1]
        return port

    def new_record(self) -> list[Received]:
        """The list for the requests of a new connection."""
        with self._lock:
            self._connections.append([])
            return self._connections[-1]

    @property
    def requests(self) -> Counter[Received]:
        """The number of times each request was received."""
        return Counter(request for connection in self._connections for request in connection)

    @property
    def requests_per_connection(self) -> Counter[int]:
        """How many connections carried each number of requests, without unused connections."""
        return Counter(len(connection) for connection in self._connections if connection)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


class _Connection(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True
    rbufsize = 65_536
    server: RecordingServer
    connection: socket.socket

    def handle(self) -> None:
        """Respond until either side closes the connection."""
        record = self.server.new_record()
        try:
            while (request := _read(self.rfile)) is not None:
                record.append(request)
                self.connection.sendall(_response(request))
                if request.is_last:
                    return
        except ConnectionError:
            return


def _read(stream: BinaryIO) -> Received | None:
    line = stream.readline()
    if not line.endswith(b"\r\n"):
        return None
    method, target, version = line.decode("ascii").split()

    headers = []
    while (line := stream.readline()) not in (b"\r\n", b""):
        name, _, value = line.decode("ascii").partition(":")
        headers.append((name.lower(), value.strip()))

    length = int(dict(headers).get("content-length", 0))
    return Received(method, target, version, tuple(sorted(headers)), stream.read(length))


def _response(request: Received) -> bytes:
    keep_alive = b"Connection: Keep-Alive\r\n" if request.has_connection("keep-alive") else b""
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n" % (len(BODY), keep_alive)
    return head if request.method == "HEAD" else head + BODY
