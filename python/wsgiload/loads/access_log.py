"""Converts the requests of an access log to a targets file."""

from __future__ import annotations

from collections import Counter
from os import PathLike, fspath

from wsgiload.documents.load_plan import RequestPlan
from wsgiload.errors import UsageError
from wsgiload.loads.recording import read_recording
from wsgiload.loads.targets_text import ImportedTargets, template_text

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
