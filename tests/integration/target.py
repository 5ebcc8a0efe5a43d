"""A small HTTP/1.1 server in this process that records its requests."""

from __future__ import annotations

import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

BODY = b"counted\n"


class CountingServer(ThreadingHTTPServer):
    """Responds to ``/missing`` with 404, to ``/never`` not at all, and to other paths with 200."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 1024

    def __init__(self, handler: type[BaseHTTPRequestHandler] | None = None) -> None:
        super().__init__(("127.0.0.1", 0), handler or _Handler)
        self._lock = threading.Lock()
        self.response_count = 0
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self.closing = threading.Event()
        self._thread = threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )

    @property
    def url(self) -> str:
        """The URL of the server."""
        return f"http://127.0.0.1:{self.server_address[1]}/"

    def record(self, request: tuple[str, str, dict[str, str], bytes]) -> None:
        """Record one request that gets a response."""
        with self._lock:
            self.response_count += 1
            self.requests.append(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that close their connection."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.closing.set()
        self.shutdown()
        self._thread.join()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body in one segment
    server: CountingServer

    def _respond(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        if self.path == "/never":
            self.server.closing.wait(60)
            self.close_connection = True
            return

        fields = {name.lower(): value for name, value in self.headers.items()}
        self.server.record((self.command, self.path, fields, body))
        self.send_response(404 if self.path == "/missing" else 200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    do_GET = do_POST = _respond

    def log_message(self, format: str, *arguments: object) -> None:
        """Do not log."""


class TwoWrites(_Handler):
    """The default of ``http.server``: separate writes for head and body, with Nagle's algorithm."""

    disable_nagle_algorithm = False
    wbufsize = 0


class SomeInTwoWrites(_Handler):
    """Sends every fifth response like ``TwoWrites``, on any connection."""

    disable_nagle_algorithm = False

    def end_headers(self) -> None:
        """Flush the head of every fifth response."""
        super().end_headers()
        if self.server.response_count % 5 == 0:
            self.wfile.flush()


def unused_port() -> int:
    """A port of the loopback interface without a listener."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def wait_for_responses(server: CountingServer, responses: int, timeout_s: float = 30.0) -> None:
    """Wait until the server has sent this many responses."""
    end = time.monotonic() + timeout_s
    while server.response_count < responses:
        assert time.monotonic() < end, f"only {server.response_count} of {responses} responses"
        time.sleep(0.01)
