"""Exit codes of ``wsgiload sweep`` for results that are not measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from wsgiload.analysis.over_cells import analyse
from wsgiload.cli import _sweep, run
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.summary import Summary
from wsgiload.experiment.plan import Experiment, experiment_facts
from wsgiload.loads.options import Level, LoadSettings
from wsgiload.loads.request import Request
from wsgiload.sweeps.sweep import SweepResult
from wsgiload.units import NS_PER_S

from .invented_cells import cell, invalid


def exit_code_of(
    cells: Sequence[CellResult], options: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> int:
    """The exit code of a sweep with these cells and options."""
    experiment = Experiment(
        name="hello",
        app="hello:app",
        app_dir=Path("/apps"),
        request=Request(),
        load=LoadSettings(duration_ns=NS_PER_S),
        levels=(Level(rate_per_s=1000.0),),
        runs=len(cells),
    )

    summary = Summary(
        schema_version=1,
        status="complete",
        experiment=experiment_facts(experiment, ("a",)),
        order=tuple(cell.id for cell in cells),
        seed=1,
        cells=tuple(cells),
    )

    result = SweepResult(Path("run"), analyse(summary), None)
    monkeypatch.setattr(_sweep, "run_sweep", lambda experiment, events: result)
    monkeypatch.setattr(_sweep, "enter_scope", lambda policy: None)
    return run(["sweep", "--servers", "waitress", "--rates", "9", "--json", "--quiet", *options])


@pytest.mark.parametrize(("slow_run", "code"), [(1, 0), (3, 99)])
def test_a_threshold_does_not_apply_to_a_repeated_trial(
    slow_run: int, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    discarded = invalid(cell("a", p99_ns=80e6), "host")
    repeated = replace(cell("a"), id="a@1000#1.2", attempt=2)
    others = [cell("a", number, 80e6 if number == slow_run else 10e6) for number in range(2, 6)]

    cells = [discarded, repeated, *others]
    assert exit_code_of(cells, ["--threshold", "p99<50ms"], monkeypatch) == code

    output = capsys.readouterr().err
    assert output == (
        "" if code == 0 else "wsgiload: threshold p99<50ms failed for a at 1,000/s, run 3\n"
    )
