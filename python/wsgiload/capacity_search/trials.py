"""Carries out single trials: on a fresh server inside its limits, or against a URL that already
runs.

Every trial is on disk before the next begins. What a trial means is judged elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from wsgiload.calibration.noise_floor import floor_of_plan
from wsgiload.catalogue.budget import busy_users
from wsgiload.catalogue.names import ServerVariant
from wsgiload.environments.provide import Environments, named_interpreters, provide
from wsgiload.errors import UsageError, WsgiloadError
from wsgiload.experiment.plan import Cell, Experiment, arrival_seed, experiment_facts
from wsgiload.experiment.settings import resolve_servers
from wsgiload.host.cpus import CpuPlan, pinned
from wsgiload.interrupts import uninterrupted
from wsgiload.limits import Janitor, select_backend
from wsgiload.loads.drive import drive
from wsgiload.loads.options import Level, load_plan
from wsgiload.results.record import CellRecord, Failure, Setting
from wsgiload.results.store import RunDirectory
from wsgiload.results.summary import Status, summarise_cell
from wsgiload.serving import launch
from wsgiload.serving.lifecycle import Place
from wsgiload.sweeps.app_check import app_failure_of, app_interpreter
from wsgiload.sweeps.cell import Bench, run_cell
from wsgiload.sweeps.sweep import check_loads, plan_cpus

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TrialPlan:
    """One trial: whom, how much, how long, and which of the trials at this level it is."""

    server: str
    level: Level
    run: int
    duration_ns: int


class Trials(Protocol):
    """Where trials are carried out. Raises KeyboardInterrupt with everything kept that was
    measured."""

    def app_of(self, server: str) -> str | None:
        """What that server serves, None where nobody knows."""

    def carry_out(self, plan: TrialPlan) -> Json:
        """The trial as a cell of a summary."""

    def write_summary(self, status: Status) -> None:
        """What of all trials so far makes a summary of its own."""


@dataclass(slots=True)
class ServerTrials:
    """A fresh server process, fresh limits and fresh connections for each trial."""

    found: Mapping[str, ServerVariant]
    environments: Environments
    bench: Bench
    directory: RunDirectory
    cells: list[Json] = field(default_factory=list)

    def app_of(self, server: str) -> str:
        """``module:callable`` of its own, or of the experiment."""
        return self.bench.setting.experiment.served(self.found[server].app).app

    def carry_out(self, plan: TrialPlan) -> Json:
        """Launch, drive, sample, stop, store."""
        bench = _bench_of(self.bench, plan)
        cell = Cell(plan.server, plan.level, plan.run, _seed(bench.setting.experiment, plan))
        record = self._record(cell, bench)
        if record.interrupted:
            raise KeyboardInterrupt
        self.directory.write_cell(
            cell.id, record.load, record.samples, record.processes, record.client
        )
        summary = summarise_cell(record, self.found[plan.server], bench.setting)
        self.cells.append(summary)
        self.write_summary("interrupted")
        return summary

    def _record(self, cell: Cell, bench: Bench) -> CellRecord:
        environment = self.environments[cell.server]
        if isinstance(environment, WsgiloadError):
            return CellRecord(cell, failure=Failure.of(environment))
        return run_cell(
            cell, self.found[cell.server], environment, bench, self.directory.server_log(cell.id)
        )

    def write_summary(self, status: Status) -> None:
        """A sweep's summary of the open-loop trials; the closed loop that gave the first guess is
        another load."""
        cells = [cell for cell in self.cells if cell["rate"] is not None]
        setting = self.bench.setting
        rates = sorted({cell["rate"] for cell in cells})
        runs = max((cell["run"] for cell in cells), default=1)
        experiment = replace(
            setting.experiment, levels=tuple(Level(rate_per_s=rate) for rate in rates), runs=runs
        )
        facts = dict(experiment_facts(experiment, tuple(self.found)))
        facts["server_cpus"] = list(setting.cpu_plan.server_cpus)
        facts["client_cpus"] = list(setting.cpu_plan.client_cpus)
        order = [cell["id"] for cell in cells]
        summary = {
            "status": status,
            "experiment": facts,
            "order": order,
            "seed": experiment.seed,
            "cells": cells,
        }
        self.directory.write_summary(summary)


def require_closed_loop(experiment: Experiment) -> None:
    """Refuse what no closed loop can send, where one has to be the first look at a server."""
    if experiment.request.sessions:
        raise UsageError(
            "a capacity search starts with a closed loop, which cannot run sessions",
            "name the rates of sessions: wsgiload sweep --rates 10,20,40 --sessions FILE",
        )


@contextmanager
def server_trials(
    experiment: Experiment, log: Callable[[str], None]
) -> Iterator[tuple[ServerTrials, Mapping[str, int]]]:
    """Everything that trials of the experiment's servers need, and how many users keep each of them
    busy; its levels are not looked at. What cannot be used is a UsageError before anything
    starts."""
    found = resolve_servers(experiment)
    # At the rates that are still to be found, a warm-up by requests takes another time.
    timeless = replace(experiment.load, warmup_requests=None)
    check_loads(replace(experiment, load=timeless, levels=(Level(rate_per_s=1.0),)))
    launch.raise_descriptor_limit()
    cpu_plan, limits = plan_cpus(experiment.limits)
    with uninterrupted():
        backend = select_backend(limits)
    if experiment.port is not None:
        launch.require_free_port(experiment.port)
    with Janitor() as janitor:
        environments = _environments(experiment, found, Place(limits, backend, janitor), log)
        directory = RunDirectory(experiment.out, experiment.name)
        bench = Bench(Setting(experiment, cpu_plan, limits), backend, janitor)
        cpus = limits.cpus or len(cpu_plan.server_cpus)
        users = {name: busy_users(one, cpus, experiment.profile) for name, one in found.items()}
        with pinned(cpu_plan.orchestrator_cpus):
            yield ServerTrials(found, environments, bench, directory), users


def _environments(
    experiment: Experiment,
    found: Mapping[str, ServerVariant],
    place: Place,
    log: Callable[[str], None],
) -> Environments:
    interpreter, named = app_interpreter(experiment), named_interpreters(found)
    failure = app_failure_of(experiment, interpreter, place)
    if failure is not None:
        return dict.fromkeys(found, failure)
    return provide(found, {None: interpreter} | named, log)


@dataclass(slots=True)
class UrlTrials:
    """Fresh connections to a server that somebody else runs, and that keeps what the last trial
    left in it."""

    url: str
    experiment: Experiment
    cpu_plan: CpuPlan
    directory: RunDirectory

    def app_of(self, server: str) -> None:
        """A URL does not tell."""

    def carry_out(self, plan: TrialPlan) -> Json:
        """Drive, store."""
        load = replace(self.experiment.load, duration_ns=plan.duration_ns)
        cell = Cell(plan.server, plan.level, plan.run, _seed(self.experiment, plan))
        asked = load_plan(self.url, self.experiment.request, load, plan.level, cell.seed)
        report = drive(asked | floor_of_plan(load.keepalive), self.cpu_plan)
        if any(reason["check"] == "interrupted" for reason in report["verdict"]["reasons"]):
            raise KeyboardInterrupt
        self.directory.write_cell(cell.id, report, ())
        return {
            "id": cell.id,
            "server": plan.server,
            "rate": plan.level.rate_per_s,
            "connections": plan.level.connections,
            "run": plan.run,
            "verdict": report["verdict"],
            "rate_result": report["rate"],
            "outcomes": report["outcomes"],
            "offered_quantiles_ns": report["offered_quantiles_ns"],
            "resources": None,
            "limits": None,
            "failure": None,
        }

    def write_summary(self, status: Status) -> None:
        """A summary tells of servers with their limits; here neither is known."""


def _bench_of(bench: Bench, plan: TrialPlan) -> Bench:
    """The bench on which one trial is a whole experiment."""
    experiment = bench.setting.experiment
    load = replace(experiment.load, duration_ns=plan.duration_ns)
    if plan.level.rate_per_s is None:
        load = replace(load, warmup_requests=None)  # they are counted by a rate
    lasting = replace(experiment, levels=(plan.level,), load=load)
    return Bench(
        Setting(lasting, bench.setting.cpu_plan, bench.setting.limits), bench.backend, bench.janitor
    )


def _seed(experiment: Experiment, plan: TrialPlan) -> int:
    """Of the load and the trial alone: every server meets the same arrivals, and no two trials
    do."""
    return arrival_seed(experiment.seed, plan.level, plan.run)
