"""Which trials are repeated, in which order, and the progress reported. No server is started."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from wsgiload.analysis.attempts import counted_attempts
from wsgiload.attribution.host_disturbance import HostSeconds
from wsgiload.doctor.settle import Settled
from wsgiload.documents.cell_result import CellFailure
from wsgiload.documents.codec import read
from wsgiload.documents.load_report import LoadReport
from wsgiload.documents.run_info import RunInfo
from wsgiload.documents.summary import Summary
from wsgiload.environments.provision import LockedEnvironment
from wsgiload.experiment.estimate import trial_s
from wsgiload.experiment.plan import Cell, Experiment, Level, expand
from wsgiload.experiment.procedure import Procedure, usual_procedure
from wsgiload.host.cpus import CpuPlan, available_cpus
from wsgiload.limits import Backend, Janitor, Limits
from wsgiload.report.over_runs import session_lines
from wsgiload.report.words import attempt_words
from wsgiload.results.record import CellRecord, Setting
from wsgiload.results.store import RunDirectory
from wsgiload.sweeps.cell import Bench
from wsgiload.sweeps.sweep import SweepEvents, _intervene, _run_cells, _Sweep
from wsgiload.units import NS_PER_S

from .filled import reason, verdict
from .test_summary import EXPERIMENT, FAILURE, FOUND, errors, status_of, valid_load

__all__ = ["valid_load"]

MODULE = sys.modules["wsgiload.sweeps.sweep"]

VALID, CLIENT, HOST, SERVER = (None, "client", "host", "server")
ENVIRONMENT = LockedEnvironment("wsgiref", Path(), Path(), "3.11", "3.11", "", False, 0.0, ())


class RecordedEvents(SweepEvents):
    """Records the progress of a sweep."""

    def __init__(self) -> None:
        self.started: list[tuple[str, int, int]] = []
        self.spans: list[float] = []
        self.plan: tuple[int, float] | None = None
        self.longest_s = 0.0

    def planned(self, count: int, seconds: float, longest_seconds: float) -> None:
        self.plan, self.longest_s = (count, seconds), longest_seconds

    def cell_started(self, cell: Cell, place: int, count: int) -> None:
        self.started.append((cell.id, place, count))

    def estimated(self, seconds: float) -> None:
        self.spans.append(seconds)


class FakeSweep:
    """A sweep in which ``outcome`` determines how each trial ends, without starting a server."""

    def __init__(
        self, folder: Path, load: LoadReport, outcome: Callable[[Cell], Any], **changes: Any
    ) -> None:
        self.experiment: Experiment = replace(EXPERIMENT, **{"runs": 2} | changes)
        self.load, self.outcome, self.events = load, outcome, RecordedEvents()
        self.order = expand(self.experiment, ("wsgiref",))
        cores = available_cpus()
        setting = Setting(self.experiment, CpuPlan(cores, cores, False, cores), Limits(cpus=1.0))
        bench = Bench(setting, cast(Backend, None), cast(Janitor, None))
        self.directory = RunDirectory(folder, "n")
        self.sweep = _Sweep(FOUND, self.order, bench, self.directory, self.events, [])

    def run_cell(self, cell: Cell, *others: Any) -> CellRecord:
        blame = self.outcome(cell)
        host = HostSeconds(blame, {}) if isinstance(blame, float) else None
        blame = None if host is not None else blame
        if isinstance(blame, CellFailure):
            return CellRecord(cell, failure=blame)
        if blame is KeyboardInterrupt:
            return CellRecord(cell, interrupted=True)

        reasons = [reason("run-queue-wait", "invalid", "m", 2)] if blame else []
        load = msgspec.structs.replace(
            self.load,
            verdict=verdict("invalid" if blame else "valid", blame, *reasons),
            response_time_ns=None,  # the fixture has no real histogram
        )

        return CellRecord(cell, load=load, measured=True, host=host)

    def run(self, monkeypatch: pytest.MonkeyPatch) -> str:
        monkeypatch.setattr(
            MODULE, "run_launch", lambda cells, *others: [self.run_cell(*cells, *others)]
        )
        monkeypatch.setattr(MODULE, "run_cell", self.run_cell)  # of interventions
        return _run_cells(self.sweep, {"wsgiref": ENVIRONMENT})

    @property
    def ids(self) -> list[str]:
        return [cell.id for cell in self.sweep.cells]


THREE_RERUNS = Procedure(reruns=3)


@pytest.fixture(autouse=True)
def idle_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test waits until this host is idle."""
    monkeypatch.setattr("wsgiload.doctor.settle.settle", lambda longest_ns, look: Settled(0.0, ()))


def test_an_invalid_trial_is_repeated_at_once_and_every_attempt_is_stored(
    tmp_path: Path, valid_load: LoadReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeSweep(
        tmp_path,
        valid_load,
        lambda cell: CLIENT if cell.run == 1 and cell.attempt < 3 else VALID,
        procedure=THREE_RERUNS,
    )
    assert fake.run(monkeypatch) == "complete"
    assert fake.ids == ["wsgiref@1000#1", "wsgiref@1000#1.2", "wsgiref@1000#1.3", "wsgiref@1000#2"]
    assert [cell.attempt for cell in fake.sweep.cells] == [1, 2, 3, 1]
    assert fake.events.started == [
        (name, place, 2) for name, place in zip(fake.ids, (1, 1, 1, 2), strict=True)
    ]

    summary = fake.sweep.write_status("complete")
    assert errors(summary) == []
    assert summary.validity is not None
    assert [trial.id for trial in summary.validity.discarded] == fake.ids[:2]
    assert summary.order == ("wsgiref@1000#1", "wsgiref@1000#2")
    assert sorted(path.stem for path in (fake.directory.path / "load").iterdir()) == sorted(
        fake.ids
    )
    assert read(Summary, fake.directory.path / "summary.json") == summary


def test_a_trial_is_repeated_at_most_three_times(
    tmp_path: Path, valid_load: LoadReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeSweep(tmp_path, valid_load, lambda cell: HOST, procedure=THREE_RERUNS)
    assert fake.run(monkeypatch) == "complete"
    assert fake.ids == [
        f"wsgiref@1000#{run}{again}" for run in (1, 2) for again in ("", ".2", ".3", ".4")
    ]


@pytest.mark.parametrize("outcome", [SERVER, FAILURE], ids=["invalid", "failed"])
def test_a_trial_that_failed_because_of_the_server_is_not_repeated(
    tmp_path: Path, valid_load: LoadReport, monkeypatch: pytest.MonkeyPatch, outcome: Any
) -> None:
    fake = FakeSweep(tmp_path, valid_load, lambda cell: outcome, procedure=THREE_RERUNS)
    assert fake.run(monkeypatch) == "complete"
    assert fake.ids == ["wsgiref@1000#1", "wsgiref@1000#2"]


def test_without_reruns_no_trial_is_repeated(
    tmp_path: Path, valid_load: LoadReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    for outcome in (CLIENT, 3.0):
        fake = FakeSweep(tmp_path, valid_load, lambda cell, outcome=outcome: outcome)
        assert fake.run(monkeypatch) == "complete"
        assert len(fake.ids) == 2


LEVELS = tuple(Level(rate_per_s=float(rate)) for rate in range(100, 1100, 100))


def waits_of(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Skip the waits for a quiet host; return the maximum of each, in seconds."""
    waits: list[float] = []

    def settle(longest_ns: int, look: object) -> Settled:
        waits.append(longest_ns / NS_PER_S)
        return Settled(0.0, ())

    monkeypatch.setattr("wsgiload.doctor.settle.settle", settle)
    return waits


@pytest.mark.parametrize("outcome", [CLIENT, 3.0], ids=["invalid", "disturbed"])
def test_a_sweep_of_one_run_repeats_a_fifth_of_its_trials_once_after_a_wait(
    tmp_path: Path, valid_load: LoadReport, monkeypatch: pytest.MonkeyPatch, outcome: Any
) -> None:
    waits = waits_of(monkeypatch)
    changes = {"runs": 1, "levels": LEVELS, "procedure": usual_procedure(1)}
    fake = FakeSweep(tmp_path, valid_load, lambda cell: outcome, **changes)
    assert fake.run(monkeypatch) == "complete"
    assert [cell.attempt for cell in fake.sweep.cells] == [1, 2, 1, 2, *[1] * 8]
    assert waits == [10.0, 10.0]
    assert fake.events.plan is not None
    count, seconds = fake.events.plan
    assert fake.events.longest_s == pytest.approx(seconds + 2 * (seconds / count + 10))

    summary = fake.sweep.write_status("complete")
    assert summary.validity is not None and summary.validity.status == "valid"
    [(line, _)] = session_lines(summary)
    assert line.startswith("Discarded 2 of 12 trials")
    assert all(f"{attempt_words(one)}: " in line for one in fake.ids[:4:2])


def test_a_disturbed_trial_is_repeated_and_the_least_disturbed_attempt_counts(
    tmp_path: Path, valid_load: LoadReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits_of(monkeypatch)
    disturbed = {1: 4.0, 2: 1.0, 3: 2.0, 4: 3.0}
    fake = FakeSweep(
        tmp_path,
        valid_load,
        lambda cell: disturbed[cell.attempt] if cell.run == 1 else VALID,
        levels=LEVELS,
        procedure=THREE_RERUNS,
    )
    fake.order = fake.sweep.order = tuple(
        cell
        for cell in fake.order
        if cell.level.rate_per_s == 100 or (cell.run == 2 and (cell.level.rate_per_s or 0) <= 600)
    )
    assert fake.run(monkeypatch) == "complete"
    repeated = [one for one in fake.sweep.cells if one.rate == 100 and one.run == 1]
    assert [one.disturbed_s for one in repeated] == [4.0, 1.0, 2.0]
    assert len(fake.order) == 7, "a fifth of the trials may be repeated, each up to three times"

    summary = fake.sweep.write_status("complete")
    [counted] = [one for one in counted_attempts(summary.cells) if one.rate == 100 and one.run == 1]
    assert counted.disturbed_s == 1.0
    assert summary.validity is not None and summary.validity.status == "valid"
    reasons = {one.id: one.reason for one in summary.validity.discarded}
    assert reasons[repeated[0].id] == "other processes or the hypervisor disturbed 4 of 20 s"
    assert counted.id not in reasons


def test_a_resumed_experiment_has_the_remaining_attempts(
    tmp_path: Path, valid_load: LoadReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeSweep(
        tmp_path,
        valid_load,
        lambda cell: KeyboardInterrupt if cell.attempt == 3 else CLIENT,
        procedure=THREE_RERUNS,
    )
    assert fake.run(monkeypatch) == "interrupted"
    assert fake.ids == ["wsgiref@1000#1", "wsgiref@1000#1.2"]

    fake.outcome = lambda cell: CLIENT if cell.run == 1 else VALID
    assert fake.run(monkeypatch) == "complete"
    assert fake.ids == [
        *(f"wsgiref@1000#1{again}" for again in ("", ".2", ".3", ".4")),
        "wsgiref@1000#2",
    ]


def test_the_estimated_time_is_reported_before_and_during_a_sweep(
    tmp_path: Path, valid_load: LoadReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeSweep(tmp_path, valid_load, lambda cell: VALID)
    fake.run(monkeypatch)
    assert fake.events.plan == (2, 2 * (25 + 2))
    assert len(fake.events.spans) == 2
    assert fake.events.spans[0] < 27, "these trials took no time"
    assert fake.events.spans[1] == 0


def test_each_trial_waits_for_a_quiet_host_and_warns_if_it_stays_busy(
    tmp_path: Path, valid_load: LoadReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[int] = []

    def settle(longest_ns: int, look: object) -> Settled:
        waits.append(longest_ns)
        return Settled(120.4, ("CPUs were only 3 % idle",) if len(waits) == 2 else ())

    monkeypatch.setattr("wsgiload.doctor.settle.settle", settle)
    fake = FakeSweep(
        tmp_path, valid_load, lambda cell: VALID, procedure=Procedure(settle_ns=120 * 10**9)
    )
    fake.run(monkeypatch)
    assert waits == [120 * 10**9] * 2
    assert [cell.settled_s for cell in fake.sweep.cells] == [120.4, 120.4]
    quiet, disturbed = fake.sweep.cells
    assert (status_of(quiet)[0], *status_of(disturbed)) == ("valid", "warn", "host")
    assert disturbed.verdict is not None
    assert disturbed.verdict.reasons[0].message.startswith(
        "the host was not idle when this trial began (waited 120 s): CPUs were only 3 % idle"
    )


def test_the_time_left_includes_the_runs_of_an_intervention(
    tmp_path: Path, valid_load: LoadReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeSweep(tmp_path, valid_load, lambda cell: VALID, intervene="cpu")
    assert fake.run(monkeypatch) == "complete"
    assert fake.events.plan is not None
    count, seconds = fake.events.plan
    assert count == 2 + 2 * 2, "as many pairs as runs"
    assert seconds == pytest.approx(count * trial_s(fake.order[0], fake.experiment))
    assert len(fake.events.spans) == 2 and fake.events.spans[-1] > 0


def test_an_interrupted_intervention_keeps_its_complete_pairs(
    tmp_path: Path, valid_load: LoadReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    quiet = iter([Settled(5.0, ())] * 3)

    def settle(longest_ns: int, look: object) -> Settled:
        if (settled := next(quiet, None)) is None:
            raise KeyboardInterrupt
        return settled

    fake = FakeSweep(
        tmp_path,
        valid_load,
        lambda cell: VALID,
        intervene="cpu",
        procedure=Procedure(settle_ns=10**9),
    )
    monkeypatch.setattr(MODULE, "run_cell", fake.run_cell)
    monkeypatch.setattr("wsgiload.doctor.settle.settle", settle)
    assert _intervene(fake.sweep, {"wsgiref": ENVIRONMENT}) == "interrupted"
    interventions = fake.sweep.write_status("interrupted").interventions
    assert interventions is not None
    (trial,) = interventions
    assert (trial.pairs, trial.valid_pairs, len(trial.with_limit), len(trial.without_limit)) == (
        2,
        1,
        1,
        1,
    )


def test_the_host_is_described_as_it_was_before_the_first_load(
    tmp_path: Path, valid_load: LoadReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeSweep(tmp_path, valid_load, lambda cell: VALID)
    fake.sweep.host = msgspec.structs.replace(fake.sweep.host, load_average="0.10 0.10 0.10")

    fake.run(monkeypatch)
    fake.sweep.write_status("complete")

    run = read(RunInfo, fake.directory.path / "run.json")
    assert run.host.load_average == "0.10 0.10 0.10"
