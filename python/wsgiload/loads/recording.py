"""A file to replay: the arrivals of a trace, or the arrivals and requests of an access log. For the
formats, see docs/schedules.md. The requests of an access log can also become a targets file.

The generator reads the lines; those that it would refuse are left out before, and counted."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from os import PathLike, fspath
from typing import BinaryIO

import msgspec

from wsgiload._loadgen import read_recording as read
from wsgiload.documents.load_plan import RequestPlan, WeightedRequest
from wsgiload.documents.typed import decode_json
from wsgiload.errors import UsageError
from wsgiload.foreign_files import RECORDING, STANDARD_INPUT, plain_input
from wsgiload.loads.access_log import Dropped, offset_line, plain_line
from wsgiload.loads.targets_text import ImportedTargets, skipped_note, template_text


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """Recorded arrivals, with their requests if known."""

    offsets_ns: tuple[int, ...]
    # The distinct requests, and for each arrival the index of its request; empty for a trace.
    targets: tuple[WeightedRequest, ...]
    requests: tuple[int, ...] | None
    # Notes for the user about the replay of this log.
    notes: tuple[str, ...]


def read_recording(path: str | PathLike[str]) -> Recording:
    """The recording in a file, also one packed by gzip; ``-`` is standard input."""
    name = "standard input" if fspath(path) == STANDARD_INPUT else fspath(path)
    try:
        with plain_input(RECORDING, path) as (file, is_cut), tempfile.TemporaryFile() as plain:
            notes = _plain_lines(file, plain, is_cut=is_cut)
            plain.flush()
            recording = decode_json(read(f"/proc/self/fd/{plain.fileno()}"), Recording)
    except FileNotFoundError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}") from error
    except ValueError as error:
        cause = str(error).partition(": ")[2]  # without the name of the temporary file
        raise UsageError(f"{name}: {cause}") from error
    return msgspec.structs.replace(recording, notes=(*notes, *recording.notes))


def _plain_lines(file: BinaryIO, plain: BinaryIO, *, is_cut: bool) -> list[str]:
    """Write the lines that the generator reads, and return notes on the others."""
    read_line = _reader_of(file)
    dropped: Counter[str] = Counter()
    lines = 0
    for row in file:
        text = ""  # keeps the numbers of lines in errors
        if line := _text(row):
            lines += 1
            try:
                text = read_line(line)
            except Dropped as reason:
                dropped[str(reason) if row.endswith(b"\n") else "cut off at the end"] += 1
        plain.write(f"{text}\n".encode())
    cut = ["the packed file is cut off; its end is missing"] if is_cut else []
    return [*skipped_note(dropped, lines, "lines"), *cut]


def _reader_of(file: BinaryIO) -> Callable[[str], str]:
    """The reader of the first line that is from an access log or a trace."""
    line = ""
    for line in filter(None, map(_text, file)):
        for reader in (plain_line, offset_line):
            with suppress(Dropped):
                reader(line)
                file.seek(0)
                return reader
    if line:
        raise ValueError(f": no line is from an access log or a trace{_EXAMPLES}")
    file.seek(0)
    return offset_line


def _text(row: bytes) -> str:
    """A line without its comment; bytes that are not UTF-8 are kept as surrogates."""
    line = row.decode("utf-8-sig", "surrogateescape").strip()
    return "" if line.startswith("#") else line


_EXAMPLES = (
    '; a line is like 0.25, or like h - - [25/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 5'
)

# The beginning of the note on arrival times, which a targets file does not contain.
_TIMES_NOTE = "the log has a resolution of"


def targets_of_access_log(path: str | PathLike[str]) -> ImportedTargets:
    """The distinct requests of a log, with their counts as weights; ``-`` is standard input.

    Raises UsageError for a file that is not an access log or contains only arrival times.
    """
    log = read_recording(path)
    if log.requests is None:
        raise UsageError(
            f"{fspath(path)} contains arrival times without requests",
            f"replay them with: wsgiload load URL --replay {fspath(path)}",
        )

    counts = Counter(log.requests)
    targets = [
        _target(one.request) + (f"--weight {counts[index]}\n" if counts[index] > 1 else "")
        for index, one in enumerate(log.targets)
    ]
    notes = tuple(note for note in log.notes if not note.startswith(_TIMES_NOTE))
    return ImportedTargets("\n".join(targets), notes)


def _target(request: RequestPlan) -> str:
    """The lines of one request. Braces in its URL are already escaped."""
    text = template_text(request.method, request.url, (), b"")
    statuses = request.check.statuses if request.check is not None else ()
    return text + (f"--expect-status {','.join(map(str, statuses))}\n" if statuses else "")
