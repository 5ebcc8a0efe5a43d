"""``--live PORT``: the live view as a page on the loopback interface, replaced by the report at the
end.

The page receives frames and lines as server-sent events. Only this machine can connect. The number
of clients and the time that each may take to send its request and to read a response are limited.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Generator
from contextlib import closing, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec

from wsgiload.documents.page_data import LiveFrame
from wsgiload.errors import UsageError
from wsgiload.foreign_text import visible
from wsgiload.report import render_live

HOST = "127.0.0.1"
MAX_CLIENTS = 64
# The page shows only the last lines of a long experiment.
MAX_LINES = 1_000
# Ten minutes of frames, two per second.
MAX_FRAMES = 1_200
# Disconnect clients that do not send their request.
REQUEST_TIMEOUT_S = 5.0
# Disconnect readers that stopped reading, and send comments to detect readers that left.
SEND_TIMEOUT_S = 5.0
SILENCE_S = 10.0
# Maximum time until a disconnected client's thread ends.
SLOT_TIMEOUT_S = 1.0
# Maximum time that the command waits for its readers to fetch the report.
FETCH_TIMEOUT_S = 5.0
_BUSY = b"HTTP/1.0 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
_HTML = "text/html; charset=utf-8"
# In addition to the policies in the pages.
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

Event = tuple[str, object]


class LivePage:
    """Listens on the port at once, and serves requests from ``start`` until ``close``."""

    def __init__(self, port: int, command: str) -> None:
        self.command = command
        self.report: Path | None = None
        self._changed = threading.Condition()
        self._lines: list[str] = []
        self._line_count = 0
        # The frames of the current trial.
        self._frames: list[LiveFrame] = []
        self._frame_count = 0
        self._ending: Event | None = None
        self._readers = 0
        self._fetched = 0
        try:
            self._server = _Server(port, self)
        except OSError as error:
            raise UsageError(
                f"--live cannot listen on {HOST}:{port}: {error.strerror}",
                "use --live 0 for any free port",
            ) from error
        self.port: int = self._server.server_address[1]
        self._serving = threading.Thread(
            target=self._server.serve_forever, name="wsgiload-live-page", daemon=True
        )

    @property
    def url(self) -> str:
        """The URL of the page."""
        return f"http://{HOST}:{self.port}/"

    @property
    def threads(self) -> set[int]:
        """The native IDs of the serving threads."""
        native_id = self._serving.native_id
        return self._server.handlers() | ({native_id} if native_id is not None else set())

    @property
    def has_readers(self) -> bool:
        """Whether the page has readers."""
        return self._readers > 0

    def start(self) -> None:
        """Start serving, in threads with the priority and the cores of the calling thread."""
        self._serving.start()

    def print_line(self, text: str) -> None:
        """Add a permanent line."""
        with self._changed:
            self._lines = [*self._lines, visible(text)][-MAX_LINES:]
            self._line_count += 1
            self._changed.notify_all()

    def show(self, frame: LiveFrame) -> None:
        """Show this frame."""
        with self._changed:
            is_same = self._frames and self._frames[-1].trial == frame.trial
            self._frames = [*(self._frames if is_same else ()), frame][-MAX_FRAMES:]
            self._frame_count += 1
            self._changed.notify_all()

    def events(self) -> Generator[Event | None, None, None]:
        """The events for one reader: all lines and the current trial's frames so far, then new ones,
        and the end.
        Yields None after ``SILENCE_S`` without an event."""
        sent = seen = 0
        with self._changed:
            self._readers += 1
        try:
            while True:
                with self._changed:
                    is_new = self._wait_for_more(sent, seen)
                    lines = self._lines[max(0, len(self._lines) - (self._line_count - sent)) :]
                    frames = self._frames[max(0, len(self._frames) - (self._frame_count - seen)) :]
                    sent, seen, ending = self._line_count, self._frame_count, self._ending
                yield from (("line", line) for line in lines)
                if frames:
                    yield "frames", frames
                if ending is not None:
                    yield ending
                    return
                if not is_new:
                    yield None
        finally:
            with self._changed:
                self._readers -= 1
                self._changed.notify_all()

    def _wait_for_more(self, sent: int, seen: int) -> bool:
        def is_more() -> bool:
            return sent < self._line_count or seen < self._frame_count or self._ending is not None

        return self._changed.wait_for(is_more, SILENCE_S)

    def fetched(self) -> None:
        """Count a reader that has fetched the report."""
        with self._changed:
            self._fetched += 1
            self._changed.notify_all()

    def end(self, report: Path | None, text: str = "") -> None:
        """Replace the page by the report, or show this text if there is none. Waits until all
        readers have it, at most ``FETCH_TIMEOUT_S``."""
        with self._changed:
            readers, self.report = self._readers, report
            self._ending = ("report", None) if report is not None else ("ended", visible(text))
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._has_ended(readers), FETCH_TIMEOUT_S)

    def _has_ended(self, readers: int) -> bool:
        return self._readers == 0 and (self.report is None or self._fetched >= readers)

    def close(self) -> None:
        """Stop serving."""
        if self._serving.is_alive():
            self._server.shutdown()
        self._server.server_close()


def _encoded(event: Event | None) -> bytes:
    """The event in the format of server-sent events; a comment for None."""
    if event is None:
        return b":\n\n"
    name, data = event
    return b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(data))


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # Do not wait for remaining readers.
    block_on_close = False
    request_queue_size = MAX_CLIENTS

    def __init__(self, port: int, page: LivePage) -> None:
        self.page = page
        self._slots = threading.BoundedSemaphore(MAX_CLIENTS)
        self._handlers: set[int] = set()
        # The clients that have not sent their request yet, and since when, the oldest first.
        self._waiting: dict[Any, float] = {}
        self._lock = threading.Lock()
        super().__init__((HOST, port), _Handler)

    def handlers(self) -> set[int]:
        """The native IDs of the threads that are serving a request."""
        with self._lock:
            return set(self._handlers)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve the request in a new thread, in place of a client that has not sent its request if
        there are too many; if all have, respond with 503."""
        if self._slots.acquire(blocking=False) or self._take_slot():
            with self._lock:
                self._waiting[request] = time.monotonic()
            super().process_request(request, client_address)
            return
        request.setblocking(False)
        with suppress(OSError):  # the client disconnected
            request.send(_BUSY)
        self.shutdown_request(request)

    def _take_slot(self) -> bool:
        with self._lock:
            oldest = next(iter(self._waiting), None)
        if oldest is None:
            return False
        self._disconnect(oldest)
        return self._slots.acquire(timeout=SLOT_TIMEOUT_S)

    def service_actions(self) -> None:
        """Disconnect clients that take too long to send their request; called twice a second."""
        until_s = time.monotonic() - REQUEST_TIMEOUT_S
        with self._lock:
            late = [request for request, since_s in self._waiting.items() if since_s < until_s]
        for request in late:
            self._disconnect(request)

    def _disconnect(self, request: Any) -> None:
        self.has_received(request)
        with suppress(OSError):  # it has just ended
            request.shutdown(socket.SHUT_RDWR)  # its thread reads the end of the file

    def has_received(self, request: Any) -> None:
        """The client sent its request, or has left."""
        with self._lock:
            self._waiting.pop(request, None)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve one request in its own thread."""
        thread = threading.get_native_id()
        with self._lock:
            self._handlers.add(thread)
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.has_received(request)
            with self._lock:
                self._handlers.discard(thread)
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors of readers that disconnected."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = SEND_TIMEOUT_S

    def do_GET(self) -> None:
        """Send the page, its events, or the report."""
        self.server.has_received(self.connection)
        page = self.server.page
        if not self._is_allowed_host():
            self.send_error(HTTPStatus.FORBIDDEN)
        elif self.path == "/":
            self._send(_HTML, render_live(page.command).encode())
        elif self.path == "/events":
            self._send_events()
        elif self.path == "/report" and page.report is not None:
            self._send(_HTML, page.report.read_bytes())
            page.fetched()
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def _is_allowed_host(self) -> bool:
        """Whether the Host header names this server. This prevents DNS rebinding, by which another
        site could read the measurement."""
        port = self.server.page.port
        return self.headers.get("Host") in (f"{HOST}:{port}", f"localhost:{port}")

    def _send(self, kind: str, body: bytes) -> None:
        self._start(kind, {"Content-Length": str(len(body))})
        self.wfile.write(body)

    def _send_events(self) -> None:
        self._start("text/event-stream")
        with closing(self.server.page.events()) as events:
            for event in events:
                self.wfile.write(_encoded(event))

    def _start(self, kind: str, headers: dict[str, str] | None = None) -> None:
        self.send_response(HTTPStatus.OK)
        for name, value in ({"Content-Type": kind} | _HEADERS | (headers or {})).items():
            self.send_header(name, value)
        self.end_headers()

    def version_string(self) -> str:
        """The name without versions, which the default would reveal."""
        return "wsgiload"

    def log_message(self, format: str, *args: object) -> None:
        """Do not log requests; the terminal shows the view."""
