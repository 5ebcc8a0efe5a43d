"""The end of a server's output."""

from __future__ import annotations

from pathlib import Path

from wsgiload.foreign_text.legible_log import after_cut

LOG_TAIL_BYTES = 4_000


def tail_of(path: Path, offset: int = 0) -> str:
    """The end of the output after its first ``offset`` bytes."""
    try:
        with path.open("rb") as log:
            start = max(offset, path.stat().st_size - LOG_TAIL_BYTES)
            log.seek(start)
            text = log.read() if start == offset else after_cut(log.read())
            return text.decode(errors="replace").strip()
    except OSError:
        return ""


def last_line(text: str) -> str:
    """The last line that is not blank; empty if there is none."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
