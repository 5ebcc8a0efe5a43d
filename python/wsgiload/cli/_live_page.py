"""``--live PORT``: the live view as a page on loopback, which becomes the report at the end.

The page follows frames and lines with server-sent events. Only this machine may connect, only so
many readers at once, and while there are none, nothing is drawn for them.
"""

from __future__ import annotations

import threading
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
MOST_READERS = 8
# As many lines of a long experiment as anybody reads.
MOST_LINES = 1_000
# A reader that takes nothing more is let go, and one that has gone is noticed.
SEND_TIMEOUT_S = 5.0
SILENCE_S = 10.0
# How long the command waits for its readers to fetch the report.
FETCH_TIMEOUT_S = 5.0
_BUSY = b"HTTP/1.0 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
_HTML = "text/html; charset=utf-8"
# Beside what the pages themselves allow.
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

Event = tuple[str, object]


class LivePage:
    """The port is taken at once; requests are served from ``start`` until ``close``."""

    def __init__(self, port: int, command: str) -> None:
        self.command = command
        self.report: Path | None = None
        self._changed = threading.Condition()
        self._lines: list[str] = []
        self._line_count = 0
        self._frame: tuple[int, LiveFrame | None] = (0, None)
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
        """Where it is."""
        return f"http://{HOST}:{self.port}/"

    @property
    def threads(self) -> set[int]:
        """The kernel's numbers of the threads that serve it."""
        own = self._serving.native_id
        return self._server.handlers() | ({own} if own is not None else set())

    @property
    def has_readers(self) -> bool:
        """Whether anybody follows."""
        return self._readers > 0

    def start(self) -> None:
        """Serve from now on, in threads with the priority and on the cores of the calling one."""
        self._serving.start()

    def tell(self, text: str) -> None:
        """A line that stays."""
        with self._changed:
            self._lines = [*self._lines, visible(text)][-MOST_LINES:]
            self._line_count += 1
            self._changed.notify_all()

    def show(self, frame: LiveFrame) -> None:
        """How things stand now."""
        with self._changed:
            self._frame = (self._frame[0] + 1, frame)
            self._changed.notify_all()

    def events(self) -> Generator[Event | None, None, None]:
        """What one reader gets: all lines so far, then every line and frame, and the end; None
        where nothing has come for a while."""
        sent = seen = 0
        with self._changed:
            self._readers += 1
        try:
            while True:
                with self._changed:
                    is_new = self._wait_for_more(sent, seen)
                    lines = self._lines[max(0, len(self._lines) - (self._line_count - sent)) :]
                    sent, (number, frame), ending = self._line_count, self._frame, self._ending
                yield from (("line", line) for line in lines)
                if number > seen and frame is not None:
                    seen = number
                    yield "frame", frame
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
            return sent < self._line_count or seen < self._frame[0] or self._ending is not None

        return self._changed.wait_for(is_more, SILENCE_S)

    def fetched(self) -> None:
        """A reader has the report."""
        with self._changed:
            self._fetched += 1
            self._changed.notify_all()

    def end(self, report: Path | None, text: str = "") -> None:
        """Become the report, or show this text where there is none; waits until all readers have
        it, but not for long."""
        with self._changed:
            readers, self.report = self._readers, report
            self._ending = ("report", None) if report is not None else ("ended", visible(text))
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._has_ended(readers), FETCH_TIMEOUT_S)

    def _has_ended(self, readers: int) -> bool:
        return self._readers == 0 and (self.report is None or self._fetched >= readers)

    def close(self) -> None:
        """Serve nobody any more."""
        if self._serving.is_alive():
            self._server.shutdown()
        self._server.server_close()


def _encoded(event: Event | None) -> bytes:
    """As server-sent events are written; a comment where nothing has come."""
    if event is None:
        return b":\n\n"
    name, data = event
    return b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(data))


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # Those that are still there at the end are not waited for.
    block_on_close = False

    def __init__(self, port: int, page: LivePage) -> None:
        self.page = page
        self._places = threading.BoundedSemaphore(MOST_READERS)
        self._handlers: set[int] = set()
        self._lock = threading.Lock()
        super().__init__((HOST, port), _Handler)

    def handlers(self) -> set[int]:
        """The kernel's numbers of the threads that serve a request now."""
        with self._lock:
            return set(self._handlers)

    def process_request(self, request: Any, client_address: Any) -> None:
        """One thread each, as long as there are places."""
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
            return
        request.setblocking(False)
        with suppress(OSError):  # it has gone
            request.send(_BUSY)
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Of one request, in its own thread."""
        thread = threading.get_native_id()
        with self._lock:
            self._handlers.add(thread)
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._handlers.discard(thread)
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """That a reader has gone is no news."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = SEND_TIMEOUT_S

    def do_GET(self) -> None:
        """The page, its events, or the report."""
        page = self.server.page
        if not self._is_own():
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

    def _is_own(self) -> bool:
        """Whether it is asked for under its own name: a page of another site could give its own
        name this address, and would then read what is measured."""
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
        """No version, which concerns nobody."""
        return "wsgiload"

    def log_message(self, format: str, *args: object) -> None:
        """The terminal shows the view, and not who reads the page."""
