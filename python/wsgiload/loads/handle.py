"""A running load and its report. Python handles no individual requests.

Only ``wait`` and ``result`` block; the interpreter stays free for other threads while a load runs,
and Ctrl-C works.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

import msgspec

from wsgiload._loadgen import Histogram, LoadHandle
from wsgiload.documents.codec import decode, encode, histogram_of, to_plain
from wsgiload.documents.load_plan import LoadPlan
from wsgiload.documents.load_report import LoadReport, Verdict
from wsgiload.errors import LoadError, UsageError
from wsgiload.loads.drive import ProgressFile

# Bounded, because resolving a name cannot be interrupted; a stopped load does no harm. Several
# processes have some seconds to report (engine/generators.rs).
STOP_TIMEOUT_S, STOP_SEVERAL_TIMEOUT_S = 2.0, 10.0

# A generator process needs nothing of Python but the extension.
_GENERATOR = [
    sys.executable,
    *("-I", "-S", "-c"),
    "import sys; sys.path.append(sys.argv[1]); import _loadgen; _loadgen.run_generator()",
    str(Path(__file__).parents[1]),
]

DistributionName = Literal[
    "response_time_ns",
    "service_time_ns",
    "send_lag_ns",
    "pool_wait_ns",
    "connect_time_ns",
    "first_byte_ns",
    "transfer_ns",
    "receive_delay_ns",
]


class Report:
    """The report of one load. ``document`` is the whole report, typed; the properties are views."""

    __slots__ = ("document",)

    document: LoadReport
    """The whole report, as documented in ``docs/metrics.md``."""

    def __init__(self, document: LoadReport) -> None:
        self.document = document

    def to_dict(self) -> Mapping[str, Any]:
        """The whole report as plain data, which is also its JSON."""
        return to_plain(self.document)

    @property
    def verdict(self) -> Verdict:
        """Whether the figures are valid, and what is to blame if they are not."""
        return self.document.verdict

    @property
    def outcomes(self) -> Mapping[str, int]:
        """Requests of the measurement by outcome; ``scheduled`` is the sum of the others."""
        return msgspec.structs.asdict(self.document.outcomes)

    @property
    def rate(self) -> Mapping[str, float | None]:
        """Requests per second over the measurement: offered, sent, achieved, goodput."""
        return msgspec.structs.asdict(self.document.rate)

    @property
    def response_time(self) -> Histogram | None:
        """Response time of correct responses in nanoseconds, from the scheduled send time to the
        last byte; None without a correct response."""
        return self.histogram("response_time_ns")

    @property
    def service_time(self) -> Histogram | None:
        """Service time of correct responses in nanoseconds, from the actual send to the last
        byte."""
        return self.histogram("service_time_ns")

    @property
    def send_lag(self) -> Histogram | None:
        """Send lag in nanoseconds: the generator's own delay."""
        return self.histogram("send_lag_ns")

    def histogram(self, name: DistributionName) -> Histogram | None:
        """The full histogram of one of the report's distributions; None if nothing was
        measured."""
        return histogram_of(getattr(self.document, name))

    def __repr__(self) -> str:
        outcomes = self.document.outcomes
        return f"<Report {self.verdict.status}: {outcomes.ok} of {outcomes.scheduled} ok>"


class Handle:
    """A running load. Use it as a context manager, which stops it at the end."""

    __slots__ = ("_inner", "_report", "stop_timeout_s")

    def __init__(self, plan: LoadPlan, progress: ProgressFile | None = None) -> None:
        path = None if progress is None else progress.path
        try:
            self._inner = LoadHandle(encode(plan), path, _GENERATOR)
        except ValueError as error:
            raise UsageError(str(error)) from error
        self._report: Report | None = None
        self.stop_timeout_s = STOP_SEVERAL_TIMEOUT_S if plan.processes > 1 else STOP_TIMEOUT_S

    def stop(self) -> None:
        """Stop the load now. Its result contains the measurements so far and is marked as
        interrupted."""
        self._inner.stop()

    def done(self) -> bool:
        """Whether the load has ended."""
        return self._inner.is_done()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait at most ``timeout`` seconds for the end; returns whether the load has ended."""
        return self._inner.wait(timeout)

    def result(self) -> Report:
        """Wait for the end and return the report. Ctrl-C stops the load and raises
        KeyboardInterrupt."""
        if self._report is None:
            self._report = Report(self._finish())
        return self._report

    def _finish(self) -> LoadReport:
        try:
            text = self._inner.result_json()
        except KeyboardInterrupt:
            self._inner.stop()
            self._inner.wait(self.stop_timeout_s)
            raise
        except ValueError as error:
            raise UsageError(str(error)) from error
        except RuntimeError as error:
            raise LoadError(str(error)) from error
        return decode(LoadReport, text, "the report of the load generator")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._inner.stop()
        self._inner.wait(self.stop_timeout_s)
