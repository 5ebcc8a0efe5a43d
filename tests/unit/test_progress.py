"""The progress of a sweep on standard error."""

from __future__ import annotations

import os
import sys

import pytest

from wsgiload.cli._live import LiveView
from wsgiload.cli._live_frame import Stage
from wsgiload.cli._output import complain
from wsgiload.cli._progress import Progress
from wsgiload.experiment.plan import Cell
from wsgiload.loads.options import Level
from wsgiload.report.words import format_span
from wsgiload.sweeps.outlook import Outlook

from .invented_cells import SCHEDULED, cell


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(44.6, "45 s"), (99, "99 s"), (100, "2 min"), (3600, "1 h 0 min"), (12_000, "3 h 20 min")],
)
def test_a_duration_is_formatted_in_readable_units(seconds: float, text: str) -> None:
    assert format_span(seconds) == text


def test_a_closed_standard_error_does_not_end_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    unread = os.fdopen(writing, "w", buffering=1)
    monkeypatch.setattr(sys, "stderr", unread)
    progress = Progress()
    progress.planned(12, 130, 130)
    progress.cell_started(Cell("a", Level(rate_per_s=1000.0), 1, 7), 1, 12)
    progress.cell_ended(cell("a", p99_ns=3e6), 1, 12)
    complain("and a warning")
    sys.stderr.close()

    with pytest.raises(BrokenPipeError):
        unread.close()


def test_the_remaining_time_is_shown_before_and_after_each_trial(
    capsys: pytest.CaptureFixture[str],
) -> None:
    progress = Progress()
    progress.planned(12, 130, 130)
    progress.cell_started(Cell("a", Level(rate_per_s=1000.0), 1, 7), 1, 12)
    progress.estimated(119)
    progress.cell_ended(cell("a", p99_ns=3e6), 1, 12)
    lines = capsys.readouterr().err.splitlines()

    assert SCHEDULED > 1000
    assert lines[0] == "12 trials, about 2 min"
    assert lines[1].startswith("[ 1/12] a at 1,000/s, run 1 … p99 ") and lines[1].endswith(
        ", valid (about 2 min left)"
    )


def test_waits_are_announced_and_no_time_remains_after_the_last_trial(
    capsys: pytest.CaptureFixture[str],
) -> None:
    progress = Progress()
    progress.planned(1, 20, 135)
    progress.cell_started(Cell("a", Level(rate_per_s=1000.0), 1, 7), 1, 1)
    progress.estimated(0)
    progress.cell_ended(cell("a"), 1, 1)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "1 trial, about 20 s; up to 2 min on a busy host"
    assert lines[1].endswith(", valid")


# --- with a live view


class RecordingView(LiveView):
    """A view that records its lines instead of drawing."""

    def __init__(self) -> None:
        super().__init__()
        self.is_watching, self.is_plain = True, False
        self.stages: list[Stage] = []
        self.lines: list[str] = []

    def show(self, stage: Stage) -> None:
        self.stages.append(stage)

    def print_line(self, text: str) -> None:
        self.lines.append(text)


FIRST = Cell("a", Level(rate_per_s=1000.0), 1, 7)
SECOND = Cell("b", Level(rate_per_s=1000.0), 1, 7)


def test_a_view_shows_the_next_trial_and_prints_a_line_per_result() -> None:
    view = RecordingView()
    progress = Progress(view)
    progress.planned(2, 30, 30)
    progress.outlook(Outlook(SECOND))
    progress.cell_started(FIRST, 1, 2)
    progress.estimated(15)
    progress.cell_ended(cell("a", p99_ns=3e6), 1, 2)
    progress.outlook(Outlook(None, "p99 so far: a 3.00 ms"))
    progress.cell_started(SECOND, 2, 2)

    first, second = view.stages
    assert (first.what, first.upcoming, first.left_s) == (
        "[1/2] a at 1,000/s, run 1",
        "b at 1,000/s, run 1",
        30,
    )
    assert (second.what, second.upcoming, second.left_s) == (
        "[2/2] b at 1,000/s, run 1",
        None,
        15,
    )
    assert second.standing == "p99 so far: a 3.00 ms"
    assert view.lines[0] == "2 trials, about 30 s"
    assert view.lines[1].startswith("[1/2] a at 1,000/s, run 1 … p99 1.00 µs to 3.00 ms, valid")


def test_an_interrupted_trial_is_named_after_the_view_is_closed() -> None:
    view = RecordingView()
    progress = Progress(view)
    progress.cell_started(FIRST, 1, 2)
    progress.ended()
    assert view.lines == ["[1/2] a at 1,000/s, run 1 … interrupted"]
