"""``wsgiload sweep`` ends with the documented code for what was measured; nothing is measured
here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from wsgiload.analysis.over_cells import analyse
from wsgiload.cli import _sweep, run
from wsgiload.documents.summary import CellResult
from wsgiload.sweeps.sweep import SweepResult

from .filled import filled_summary
from .invented_cells import cell, invalid


def ends_with(
    cells: Sequence[CellResult], words: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> int:
    """The exit code of a sweep that measured these cells."""
    summary = filled_summary({"runs": len(cells)}, cells)
    result = SweepResult(Path("run"), analyse(summary), None)
    monkeypatch.setattr(_sweep, "run_sweep", lambda experiment, events: result)
    monkeypatch.setattr(_sweep, "enter_scope", lambda policy: None)
    return run(["sweep", "--servers", "waitress", "--json", "--quiet", *words])


@pytest.mark.parametrize(("slow_run", "code"), [(1, 0), (3, 99)])
def test_a_threshold_is_not_asked_of_a_trial_that_was_made_again(
    slow_run: int, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spoiled = invalid(cell("a", p99_ns=80e6), "host")
    again = msgspec.structs.replace(cell("a"), id="a@1000#1.2", attempt=2)
    others = [cell("a", number, 80e6 if number == slow_run else 10e6) for number in range(2, 6)]
    assert ends_with([spoiled, again, *others], ["--threshold", "p99<50ms"], monkeypatch) == code
    said = capsys.readouterr().err
    assert said == ("" if code == 0 else "wsgiload: threshold p99<50ms failed by a@1000#3\n")
