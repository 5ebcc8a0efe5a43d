"""What ``wsgiload sweep`` prints while it measures: one line per cell, on standard error."""

from __future__ import annotations

from collections.abc import Sequence

from wsgiload.cli._output import tell
from wsgiload.documents.summary import CellResult
from wsgiload.experiment.plan import Cell
from wsgiload.report.words import (
    enough_requests,
    format_bounds,
    format_span,
    plural,
    quantile_name,
    verdict_words,
)
from wsgiload.sweeps.sweep import SweepEvents


class Progress(SweepEvents):
    """The events of a sweep, printed as they happen."""

    def __init__(self) -> None:
        self.conclusions: Sequence[str] = ()
        """What the plan allows to conclude; said when the first trial is about to begin."""
        self._is_line_open = False
        self._left = ""

    def message(self, text: str) -> None:
        tell(text)

    def planned(self, count: int, seconds: float, longest_seconds: float) -> None:
        text = f"{plural(count, 'trial')}, about {format_span(seconds)}"
        if longest_seconds > seconds:
            text += f"; up to {format_span(longest_seconds)} on a busy host"
        for line in (text, *self.conclusions):
            tell(line)

    def estimated(self, seconds: float) -> None:
        self._left = f" (about {format_span(seconds)} left)" if seconds else ""

    def cell_started(self, cell: Cell, place: int, count: int) -> None:
        tell(f"[{place:>{len(str(count))}}/{count}] {cell.id} … ", is_whole=False)
        self._is_line_open = True

    def cell_ended(self, summary: CellResult, place: int, count: int) -> None:
        self._is_line_open = False
        failure, outcomes = summary.failure, summary.outcomes
        if failure is not None:
            tell(f"failed: {failure.message}{self._left}")
            return
        if outcomes is None or summary.verdict is None:
            return
        quantile = 0.99 if enough_requests(outcomes.scheduled, 0.99) else 0.5
        bounds = (summary.offered_quantiles_ns or {}).get(str(quantile))
        figure = format_bounds(bounds, quantile, outcomes)
        tell(f"{quantile_name(quantile)} {figure}, {verdict_words(summary.verdict)}{self._left}")

    def ended(self) -> None:
        if self._is_line_open:
            tell("interrupted")
