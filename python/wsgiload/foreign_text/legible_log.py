"""Makes the logs of servers and builds on disk legible and limits their size."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wsgiload.foreign_text import visible

MAX_LOG_BYTES = 8 << 20


@contextmanager
def legible_log(path: Path) -> Iterator[None]:
    """Escape and shorten the log when the block ends. Nothing may write to it after that."""
    try:
        yield
    finally:
        if path.exists():
            make_legible(path)


def after_cut(text: bytes) -> bytes:
    """The text without its first line, which was cut: half of a secret is not recognized."""
    return text.partition(b"\n")[2] or text


def left_out(omitted_bytes: int) -> bytes:
    """The line in a log in place of what was not kept."""
    return f"[… {omitted_bytes:,} bytes left out …]\n".encode()


def _before_cut(text: bytes) -> bytes:
    return text.rpartition(b"\n")[0] or text


def make_legible(path: Path, max_bytes: int = MAX_LOG_BYTES) -> None:
    """Escape control characters in the file, and keep only its beginning and end if it is too
    long."""
    size_bytes = path.stat().st_size
    with path.open("rb") as log:
        if size_bytes <= max_bytes:
            text = log.read(max_bytes)
        else:
            half = max_bytes // 2
            omitted = size_bytes - 2 * half
            text = _before_cut(log.read(half)) + b"\n" + left_out(omitted)
            log.seek(-half, os.SEEK_END)
            text += after_cut(log.read(half))

    legible = visible(text.decode(errors="backslashreplace").replace("\r\n", "\n")).encode()
    if len(legible) == size_bytes and legible == text:
        return
    temporary = path.with_name(path.name + ".unfinished")
    temporary.write_bytes(legible)
    temporary.rename(path)
