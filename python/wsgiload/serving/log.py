"""The output of a server, read from a pipe and kept on disk within bounds.

A server that writes to a file is charged for the file's page cache, and can fill the disk. A pipe
that is read promptly costs it neither memory nor time.
"""

from __future__ import annotations

import fcntl
import os
import select
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from wsgiload.foreign_text import after_cut, left_out
from wsgiload.interrupts import uninterrupted

LOG_TAIL_BYTES = 4_000
# Kept of an output that is longer than both.
HEAD_BYTES = 1 << 20
TAIL_BYTES = 4 << 20
# The most that the kernel gives an ordinary user: a burst of this size does not block the server.
PIPE_BYTES = 1 << 20
# Collect short lines, so that a server that logs each request does not wake us for each line.
PAUSE_S = 0.005
# The end of a long output is in memory; at most this much of it is lost if we are killed.
STORE_INTERVAL_S = 1.0


class OutputLog:
    """Reads what processes write to ``stream`` in a thread, and keeps its beginning and its end in
    a file; always call ``close``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._received_bytes = 0
        self._file = path.open("wb", buffering=0)
        self._head_bytes = self._head_line_bytes = 0
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._unstored_since_s: float | None = None  # None: the file is complete
        self._lock = threading.Lock()
        self._reading, writing = os.pipe()
        os.set_blocking(self._reading, False)
        with suppress(OSError):  # beyond the user's share; the default is smaller
            fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self.stream = os.fdopen(writing, "wb", buffering=0)
        self._stop, self._stop_writing = os.pipe()
        self._thread = threading.Thread(target=self._run, name="wsgiload-log", daemon=True)
        self._thread.start()

    def mark(self) -> int:
        """The length of the output so far; ``read`` and ``tail`` can start there."""
        self._read_available()
        return self._received_bytes

    def add(self, line: str) -> None:
        """Add a line of our own, after the output so far."""
        self._read_available()
        with self._lock:
            self._keep(f"{line}\n".encode())

    def read(self, start: int = 0, max_bytes: int = HEAD_BYTES + TAIL_BYTES) -> bytes:
        """The output after its first ``start`` bytes, as far as it was kept, without lines that are
        cut; if it is longer than ``max_bytes``, its end."""
        self._read_available()
        with self._lock, self.path.open("rb") as file:
            self._store()
            length = self._received_bytes - start
            kept = min(length, max_bytes, self.path.stat().st_size)
            file.seek(-kept, os.SEEK_END)
            return file.read() if kept == length else after_cut(file.read())

    def tail(self, start: int = 0, max_bytes: int = LOG_TAIL_BYTES) -> str:
        """The end of the output after its first ``start`` bytes."""
        return self.read(start, max_bytes).decode(errors="replace").strip()

    def close(self) -> None:
        """Stop reading, even if a process still writes, and complete the file."""
        os.close(self._stop_writing)
        self._thread.join()
        self._read_available()
        with self._lock:
            self._store()
        self.stream.close()
        self._file.close()
        os.close(self._reading)
        os.close(self._stop)

    def _run(self) -> None:
        poller = select.poll()
        poller.register(self._reading, select.POLLIN)
        poller.register(self._stop, 0)  # reports only that its other end was closed
        while True:
            is_complete = self._unstored_since_s is None
            events = poller.poll(None if is_complete else STORE_INTERVAL_S * 1_000)
            if any(fd == self._stop for fd, _ in events):
                return
            if self._read_available() < PIPE_BYTES // 2:
                time.sleep(PAUSE_S)

    def _read_available(self) -> int:
        """Read what the pipe contains; returns the number of bytes, at most about its size."""
        read_bytes = 0
        with self._lock:
            with suppress(BlockingIOError):
                while read_bytes < PIPE_BYTES:
                    piece = os.read(self._reading, PIPE_BYTES)
                    self._keep(piece)
                    read_bytes += len(piece)
            since_s = self._unstored_since_s
            if since_s is not None and time.monotonic() > since_s + STORE_INTERVAL_S:
                self._store()
        return read_bytes

    def _keep(self, piece: bytes) -> None:
        self._received_bytes += len(piece)
        room = HEAD_BYTES - self._head_bytes
        head, rest = piece[:room], piece[room:]
        if head:
            with suppress(OSError):  # a full disk costs the log, not the measurement
                self._file.write(head)
            if b"\n" in head:
                self._head_line_bytes = self._head_bytes + head.rindex(b"\n") + 1
            self._head_bytes += len(head)
        if rest:
            self._tail.append(rest)
            self._tail_bytes += len(rest)
            while self._tail_bytes - len(self._tail[0]) >= TAIL_BYTES:
                self._tail_bytes -= len(self._tail.popleft())
            self._unstored_since_s = self._unstored_since_s or time.monotonic()

    def _store(self) -> None:
        """Write the end of the output behind its beginning, with a line for what is left out."""
        if self._unstored_since_s is None:
            return
        start, text = self._head_bytes, b"".join(self._tail)
        if self._received_bytes > start + len(text):
            start, text = self._head_line_bytes or start, after_cut(text)
            line = left_out(self._received_bytes - start - len(text))
            text = (line if self._head_line_bytes else b"\n" + line) + text
        with suppress(OSError):
            os.pwrite(self._file.fileno(), text, start)
            self._file.truncate(start + len(text))
        self._unstored_since_s = None


@contextmanager
def output_log(path: Path) -> Iterator[OutputLog]:
    """A log that replaces the file and is complete when the block ends."""
    log = OutputLog(path)
    try:
        yield log
    finally:
        with uninterrupted():
            log.close()


def last_line(text: str) -> str:
    """The last line that is not blank; empty if there is none."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
