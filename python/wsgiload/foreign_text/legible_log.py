"""A log of a server or of a build as it stays on disk: legible, and not longer than anybody
reads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wsgiload.foreign_text import visible

MOST_LOG_BYTES = 8 << 20


@contextmanager
def legible_log(path: Path) -> Iterator[None]:
    """Escape and shorten the log once nobody writes to it any more, when the block ends."""
    try:
        yield
    finally:
        if path.exists():
            make_legible(path)


def after_cut(text: bytes) -> bytes:
    """Without the line that the cut before it went through: half a secret is not recognised."""
    return text.partition(b"\n")[2] or text


def _before_cut(text: bytes) -> bytes:
    return text.rpartition(b"\n")[0] or text


def make_legible(path: Path, most_bytes: int = MOST_LOG_BYTES) -> None:
    """Replace the file by its beginning and its end, with control characters escaped; unchanged
    where there is nothing to do."""
    written = path.stat().st_size
    with path.open("rb") as log:
        if written <= most_bytes:
            kept = log.read(most_bytes)
        else:
            half = most_bytes // 2
            left_out = written - 2 * half
            kept = _before_cut(log.read(half)) + f"\n… {left_out} bytes left out …\n".encode()
            log.seek(-half, os.SEEK_END)
            kept += after_cut(log.read(half))

    legible = visible(kept.decode(errors="backslashreplace").replace("\r\n", "\n")).encode()
    if len(legible) == written and legible == kept:
        return
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.write_bytes(legible)
    unfinished.rename(path)
