"""What a file to replay holds: the arrivals of a trace, or an access log's arrivals and requests.
Their formats: docs/schedules.md."""

from __future__ import annotations

from os import PathLike, fspath

import msgspec

from wsgiload._loadgen import read_recording as read
from wsgiload.documents.load_plan import WeightedRequest
from wsgiload.errors import UsageError


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """Recorded arrivals, and what each of them requested if that is known."""

    offsets_ns: tuple[int, ...]
    # The different requests, and for each arrival the index of its own; neither in a trace.
    targets: tuple[WeightedRequest, ...]
    requests: tuple[int, ...] | None
    # What a user should know about the replay of this log.
    notes: tuple[str, ...]


def read_recording(path: str | PathLike[str]) -> Recording:
    """The recording in a file; ``-`` is standard input."""
    try:
        return msgspec.json.decode(read(fspath(path)), type=Recording)
    except ValueError as error:
        raise UsageError(str(error)) from error
