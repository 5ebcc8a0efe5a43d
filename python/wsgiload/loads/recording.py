"""A file to replay: the arrivals of a trace, or the arrivals and requests of an access log. For the
formats, see docs/schedules.md. The requests of an access log can also become a targets file."""

from __future__ import annotations

from collections import Counter
from os import PathLike, fspath

import msgspec

from wsgiload._loadgen import read_recording as read
from wsgiload.documents.load_plan import RequestPlan, WeightedRequest
from wsgiload.documents.typed import decode_json
from wsgiload.errors import UsageError
from wsgiload.foreign_files import RECORDING, checked_input
from wsgiload.loads.targets_text import ImportedTargets, template_text


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """Recorded arrivals, with their requests if known."""

    offsets_ns: tuple[int, ...]
    # The distinct requests, and for each arrival the index of its request; empty for a trace.
    targets: tuple[WeightedRequest, ...]
    requests: tuple[int, ...] | None
    # Notes for the user about the replay of this log.
    notes: tuple[str, ...]


def read_recording(path: str | PathLike[str]) -> Recording:
    """The recording in a file; ``-`` is standard input."""
    try:
        with checked_input(RECORDING, path):
            return decode_json(read(fspath(path)), Recording)
    except ValueError as error:
        raise UsageError(str(error)) from error


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
