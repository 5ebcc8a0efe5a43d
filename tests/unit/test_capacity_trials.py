"""Warm-up settings of single trials, without starting a server."""

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
WITH_WARMUP_REQUESTS = replace(EXPERIMENT, load=replace(EXPERIMENT.load, warmup_requests=100_000))


def test_only_open_loop_trials_have_a_warm_up_by_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiments: list[Experiment] = []

    def run_cell(
        cell: Cell, _found: object, _environment: object, bench: Bench, _log: Path
    ) -> CellRecord:
        experiments.append(bench.setting.experiment)
        return CellRecord(cell, failure=FAILURE)

    monkeypatch.setattr(MODULE, "run_cell", run_cell)
    setting = Setting(WITH_WARMUP_REQUESTS, CpuPlan((0,), (0,), shared_cores=True), Limits())
    bench = Bench(setting, cast(Backend, None), cast(Janitor, None))
    trials = ServerTrials(FOUND, {"wsgiref": ENVIRONMENT}, bench, RunDirectory(tmp_path, "n"))

    trials.carry_out(TrialPlan("wsgiref", Level(connections=8), 1, NS_PER_S))
    trials.carry_out(TrialPlan("wsgiref", Level(rate_per_s=100.0), 1, NS_PER_S))

    assert [experiment.load.warmup_requests for experiment in experiments] == [None, 100_000]
    assert {experiment.load.warmup_ns for experiment in experiments} == {
        WITH_WARMUP_REQUESTS.load.warmup_ns
    }


def test_a_warm_up_by_requests_is_not_checked_before_the_rate_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_limits(*_: object, **log: object) -> Backend:
        raise LimitsError("reached the limits")

    monkeypatch.setattr(groups, "select_backend", no_limits)
    with (
        pytest.raises(LimitsError, match="reached the limits"),
        server_trials(WITH_WARMUP_REQUESTS, print),
    ):
        pass
