"""Sleeps 75 to 100 ms, then gets an HTML page from one of ten threads that simulate a database.

The second app of the Circus comparison of 2012, without its loop over constants.
"""

from __future__ import annotations

import os
import queue
import random
import select
import threading
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

SLEEP_S = (0.075, 0.100)
DATABASES = 10
QUERY = b"*" * 100 + b"\n"

PATH = "/"
EXPECTED_BODY = b"<html>\n  <body>\n    Hello, World!\n  </body>\n</html>\n"
HEADERS = [
    ("Content-Type", "text/html; charset=utf-8"),
    ("Content-Length", str(len(EXPECTED_BODY))),
]


class Connection:
    """A connection to a thread that simulates a database: a pipe in each direction.

    Waits in ``select``, which yields in a server that patches the standard library. Not a socket,
    because meinheld's replacement for sockets does not work on Python 3.
    """

    def __init__(self) -> None:
        self._queries, self._to_database = os.pipe()
        self._pages, self._to_app = os.pipe()
        threading.Thread(target=self._serve, daemon=True).start()

    def query(self) -> bytes:
        """Request the page."""
        os.write(self._to_database, QUERY)
        return _read(self._pages, len(EXPECTED_BODY))

    def _serve(self) -> None:
        while _read(self._queries, len(QUERY)):
            for line in EXPECTED_BODY.splitlines(keepends=True):
                os.write(self._to_app, line)


def _read(descriptor: int, length_bytes: int) -> bytes:
    """This many bytes, or fewer if the other end was closed."""
    data = b""
    while len(data) < length_bytes:
        select.select([descriptor], [], [])
        part = os.read(descriptor, length_bytes - len(data))
        if not part:
            break
        data += part
    return data


class Databases:
    """Connections to the threads, which start at the first request: the server forks its workers
    earlier, and threads do not survive a fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: queue.Queue[Connection] | None = None

    def query(self) -> bytes:
        """Query the next idle connection."""
        idle = self._idle or self._start()
        connection = idle.get()
        try:
            return connection.query()
        finally:
            idle.put(connection)

    def _start(self) -> queue.Queue[Connection]:
        with self._lock:
            if self._idle is None:
                idle: queue.Queue[Connection] = queue.Queue()
                for _ in range(DATABASES):
                    idle.put(Connection())
                self._idle = idle
            return self._idle


DATABASE = Databases()


def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Sleep, query, then respond."""
    time.sleep(random.uniform(*SLEEP_S))
    body = DATABASE.query()
    start_response("200 OK", list(HEADERS))
    return [body]


if "WSGILOAD_COUNT_FOLDER" in os.environ:  # wsgiload reads the number of calls
    from counted import counted  # type: ignore[import-not-found]  # beside this file, on the server's path

    app = counted(app)
