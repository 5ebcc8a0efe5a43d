"""A server that keeps every request of every connection, to compare clients with each other."""

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
    """One request; names of header fields in lower case, in alphabetical order."""

    method: str
    target: str
    version: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def says(self, option: str) -> bool:
        """Whether its Connection field has this value."""
        return dict(self.headers).get("connection", "").lower() == option

    @property
    def is_last(self) -> bool:
        """Whether the connection ends after it, by the rules of its version."""
        if self.version == "HTTP/1.0":
            return not self.says("keep-alive")
        return self.says("close")


class RecordingServer(socketserver.ThreadingTCPServer):
    """Responds to everything with 200, and keeps a connection as long as its client wants."""

    daemon_threads = True
    request_queue_size = 1024

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self._lock = threading.Lock()
        self._connections: list[list[Received]] = []
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def port(self) -> int:
        """Where it listens, on 127.0.0.1."""
        port: int = self.server_address[1]
        return port

    def connected(self) -> list[Received]:
        """The record of a new connection."""
        with self._lock:
            self._connections.append([])
            return self._connections[-1]

    @property
    def requests(self) -> Counter[Received]:
        """How often each request came."""
        return Counter(one for connection in self._connections for one in connection)

    @property
    def lengths(self) -> Counter[int]:
        """How many connections carried how many requests; those without any are not counted."""
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
        """Answer until either side ends the connection."""
        record = self.server.connected()
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
    agreed = b"Connection: Keep-Alive\r\n" if request.says("keep-alive") else b""
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n" % (len(BODY), agreed)
    return head if request.method == "HEAD" else head + BODY
