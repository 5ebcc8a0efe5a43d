"""The progress of a running load, which the generator writes to a file in memory.

Reader and writer never wait for each other. Without a reader, there is no such file.
"""

from __future__ import annotations

import os
from typing import Self

import msgspec

from wsgiload._loadgen import read_progress
from wsgiload.documents.load_report import Outcomes
from wsgiload.documents.typed import decode_json


class LoadProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The latest progress; timestamps are nanoseconds of CLOCK_MONOTONIC."""

    at_ns: int
    start_ns: int
    measure_from_ns: int
    measure_to_ns: int
    outcomes: Outcomes
    """Outcomes of the measurement so far; requests in the system only count as scheduled."""
    scheduled: int
    """Scheduled requests so far, including warm-up and cool-down."""
    answered: int
    """Complete responses so far, including warm-up and cool-down."""
    p50_ns: int | None
    p99_ns: int | None

    @property
    def ended(self) -> int:
        """Requests of the measurement that have an outcome."""
        counts: tuple[int, ...] = msgspec.structs.astuple(self.outcomes)
        return sum(counts) - self.outcomes.scheduled


class ProgressFile:
    """The in-memory file of one load, which exists until the end of the ``with`` block."""

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("wsgiload-progress")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self.descriptor)

    @property
    def path(self) -> str:
        """Its path in this process and in one that inherits the file descriptor."""
        return f"/proc/self/fd/{self.descriptor}"

    def read(self, threads: int) -> LoadProgress | None:
        """The current progress; None before all threads have written theirs."""
        text = read_progress(self.path, threads)
        return None if text is None else decode_json(text, LoadProgress)
