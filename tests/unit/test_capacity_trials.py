"""What a single trial is asked for. No server is started here."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from wsgiload.capacity_search.trials import ServerTrials, TrialPlan, server_trials
from wsgiload.errors import LimitsError
from wsgiload.experiment.plan import Cell, Experiment
from wsgiload.host.cpus import CpuPlan
from wsgiload.limits import Backend, Janitor, Limits
from wsgiload.loads.options import Level
from wsgiload.results.record import CellRecord, Setting
from wsgiload.results.store import RunDirectory
from wsgiload.serving import groups
from wsgiload.sweeps.cell import Bench
from wsgiload.units import NS_PER_S

from .test_reruns import ENVIRONMENT
from .test_summary import EXPERIMENT, FAILURE, FOUND

MODULE = sys.modules["wsgiload.capacity_search.trials"]
COUNTED = replace(EXPERIMENT, load=replace(EXPERIMENT.load, warmup_requests=100_000))


def test_only_a_rate_has_a_warm_up_by_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Experiment] = []

    def run_cell(
        cell: Cell, _found: object, _environment: object, bench: Bench, _log: Path
    ) -> CellRecord:
        asked.append(bench.setting.experiment)
        return CellRecord(cell, failure=FAILURE)

    monkeypatch.setattr(MODULE, "run_cell", run_cell)
    setting = Setting(COUNTED, CpuPlan((0,), (0,), shared_cores=True), Limits())
    bench = Bench(setting, cast(Backend, None), cast(Janitor, None))
    trials = ServerTrials(FOUND, {"wsgiref": ENVIRONMENT}, bench, RunDirectory(tmp_path, "n"))
    trials.carry_out(TrialPlan("wsgiref", Level(connections=8), 1, NS_PER_S))
    trials.carry_out(TrialPlan("wsgiref", Level(rate_per_s=100.0), 1, NS_PER_S))
    assert [one.load.warmup_requests for one in asked] == [None, 100_000]
    assert {one.load.warmup_ns for one in asked} == {COUNTED.load.warmup_ns}


def test_how_long_a_warm_up_by_requests_takes_is_not_judged_before_there_is_a_rate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_limits(_: object) -> Backend:
        raise LimitsError("this came next")

    monkeypatch.setattr(groups, "select_backend", no_limits)
    with pytest.raises(LimitsError, match="this came next"), server_trials(COUNTED, print):
        pass
