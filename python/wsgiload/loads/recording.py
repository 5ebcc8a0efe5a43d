"""A file to replay: the arrivals of a trace, or the arrivals and requests of an access log. For the
formats, see docs/schedules.md."""

from __future__ import annotations

from os import PathLike, fspath

import msgspec

from wsgiload._loadgen import read_recording as read
from wsgiload.documents.load_plan import WeightedRequest
from wsgiload.documents.typed import decode_json
from wsgiload.errors import UsageError
from wsgiload.foreign_files import RECORDING, checked_input


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
