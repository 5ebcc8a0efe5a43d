"""Runs single trials on a newly started server within its limits, or against the URL of a running
server. Every trial is stored before the next begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

import msgspec

from wsgiload.calibration.noise_floor import floor_of_plan
from wsgiload.catalogue.budget import busy_users
from wsgiload.catalogue.names import ServerVariant
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.summary import Summary
from wsgiload.environments.user_environment import Environments, provide
from wsgiload.errors import UsageError, WsgiloadError
from wsgiload.experiment.plan import Cell, Experiment, arrival_seed
from wsgiload.experiment.settings import resolve_servers
from wsgiload.experiment.unused_settings import unused_settings
from wsgiload.host.cpus import CpuPlan, pinned
from wsgiload.loads.drive import drive
from wsgiload.loads.options import Level, load_plan
from wsgiload.results.load_attempts import cell_of_load
from wsgiload.results.record import CellRecord, Setting, failure_of
from wsgiload.results.run_lock import exclusive
from wsgiload.results.store import RunDirectory
from wsgiload.results.summary import Status, facts_of, summarise_cell
from wsgiload.sampling.running_load import LoadEvents, watched
from wsgiload.serving import launch
from wsgiload.serving.groups import Place, chosen_place
from wsgiload.sweeps.app_check import app_failure_of, environment_note, interpreters_of
from wsgiload.sweeps.cell import Bench, run_cell
from wsgiload.sweeps.sweep import check_loads, plan_cpus, services_of


@dataclass(frozen=True, slots=True)
class TrialPlan:
    """One trial: server, load level, duration, and its number at this level."""

    server: str
    level: Level
    run: int
    duration_ns: int


class Trials(Protocol):
    """Runs trials. Raises KeyboardInterrupt after storing everything that was measured."""

    def app_of(self, server: str) -> str | None:
        """The app of this server; None: unknown."""

    def carry_out(self, plan: TrialPlan) -> CellResult:
        """Run the trial and return it as a cell of a summary."""

    def write_summary(self, status: Status) -> None:
        """Write the summary of all trials so far."""


@dataclass(slots=True)
class ServerTrials:
    """Trials with new server processes, a new cgroup and new connections each."""

    variants: Mapping[str, ServerVariant]
    environments: Environments
    bench: Bench
    directory: RunDirectory
    cells: list[CellResult] = field(default_factory=list)

    def app_of(self, server: str) -> str | None:
        """``module:callable`` of the server, or of the experiment."""
        return self.bench.setting.experiment.served(self.variants[server].app).app

    def carry_out(self, plan: TrialPlan) -> CellResult:
        """Launch the server, drive and sample the load, stop, store."""
        bench = _bench_of(self.bench, plan)
        cell = Cell(plan.server, plan.level, plan.run, _seed(bench.setting.experiment, plan))
        record = self._record(cell, bench)
        if record.interrupted:
            raise KeyboardInterrupt
        self.directory.write_cell(
            cell.id, record.load, record.samples, record.processes, record.client
        )
        self.directory.write_services(cell.id, record.service_samples)
        summary = summarise_cell(record, self.variants[plan.server], bench.setting)
        self.cells.append(summary)
        self.write_summary("interrupted")
        return summary

    def _record(self, cell: Cell, bench: Bench) -> CellRecord:
        environment = self.environments[cell.server]
        if isinstance(environment, WsgiloadError):
            return CellRecord(cell, failure=failure_of(environment))
        return run_cell(
            cell, self.variants[cell.server], environment, bench, self.directory.server_log(cell.id)
        )

    def write_summary(self, status: Status) -> None:
        """Write a sweep's summary of the open-loop trials, without the closed loop of the first
        guess."""
        cells = tuple(cell for cell in self.cells if cell.rate is not None)
        setting = self.bench.setting
        rates = sorted({cell.rate for cell in cells if cell.rate is not None})
        runs = max((cell.run for cell in cells), default=1)
        experiment = replace(
            setting.experiment, levels=tuple(Level(rate_per_s=rate) for rate in rates), runs=runs
        )
        summary = Summary(
            schema_version=1,
            status=status,
            experiment=facts_of(experiment, tuple(self.variants), setting.cpu_plan),
            order=tuple(cell.id for cell in cells),
            seed=experiment.seed,
            cells=cells,
        )
        self.directory.write_summary(summary)


def require_closed_loop(experiment: Experiment) -> None:
    """Refuse sessions, because the rates follow from a closed loop."""
    if experiment.request.sessions:
        raise UsageError(
            "a closed loop determines the rates, but cannot run sessions",
            "sweep session rates instead: wsgiload sweep --rates 10,20,40 --sessions FILE",
        )


@contextmanager
def server_trials(
    experiment: Experiment, log: Callable[[str], None], events: LoadEvents | None = None
) -> Iterator[tuple[ServerTrials, Mapping[str, int]]]:
    """Everything that trials of the experiment's servers need, and the number of users that keeps
    each server busy. Ignores the experiment's load levels. Raises UsageError before anything starts
    if the plan cannot be used."""
    variants = resolve_servers(experiment)
    # The rates are not known yet, so the duration of a warm-up by requests is not, either.
    timeless = replace(experiment.load, warmup_requests=None)
    check_loads(replace(experiment, load=timeless, levels=(Level(rate_per_s=1.0),)))
    launch.raise_fd_limit()
    cpu_plan, limits = plan_cpus(experiment.limits)
    if experiment.port is not None:
        launch.require_free_port(experiment.port)
    with (
        chosen_place(limits, log) as place,
        services_of(experiment, place, cpu_plan, log) as running,
    ):
        environments = _environments(experiment, variants, place, log)
        directory = RunDirectory(
            experiment.out, experiment.name, stores_secrets=experiment.store_secrets
        )
        setting = Setting(experiment, cpu_plan, limits)
        watching = events or LoadEvents()
        bench = Bench(setting, place.backend, place.janitor, running, watching)
        unused = unused_settings(experiment, variants)
        if unused is not None:
            log(unused)
        cpus = limits.cpus or len(cpu_plan.server_cpus)
        users = {
            name: busy_users(variant, cpus, experiment.profile)
            for name, variant in variants.items()
        }
        with exclusive(directory.path), pinned(cpu_plan.orchestrator_cpus):
            yield ServerTrials(variants, environments, bench, directory), users


def _environments(
    experiment: Experiment,
    variants: Mapping[str, ServerVariant],
    place: Place,
    log: Callable[[str], None],
) -> Environments:
    interpreters = interpreters_of(experiment, variants)
    note = environment_note(experiment, interpreters)
    if note is not None:
        log(note)
    return provide(variants, interpreters, log, app_failure_of(experiment, interpreters, place))


@dataclass(slots=True)
class UrlTrials:
    """Trials with new connections to a server that wsgiload does not control and that keeps its
    state between trials."""

    url: str
    experiment: Experiment
    cpu_plan: CpuPlan
    directory: RunDirectory
    events: LoadEvents = field(default_factory=LoadEvents)

    def app_of(self, server: str) -> None:
        """Unknown for a URL."""

    def carry_out(self, plan: TrialPlan) -> CellResult:
        """Drive the load and store it."""
        load = replace(self.experiment.load, duration_ns=plan.duration_ns)
        cell = Cell(plan.server, plan.level, plan.run, _seed(self.experiment, plan))
        generator_plan = load_plan(self.url, self.experiment.request, load, plan.level, cell.seed)
        generator_plan = msgspec.structs.replace(
            generator_plan, noise_floor=floor_of_plan(load.keepalive)
        )

        with watched(self.events, generator_plan) as progress:
            report = drive(generator_plan, self.cpu_plan, progress=progress)
        if any(reason.check == "interrupted" for reason in report.verdict.reasons):
            raise KeyboardInterrupt
        self.directory.write_cell(cell.id, report, ())
        return cell_of_load(report, cell.id, server=cell.server, run=cell.run)

    def write_summary(self, status: Status) -> None:
        """Do nothing: a summary describes servers and their limits, both unknown here."""


def _bench_of(bench: Bench, plan: TrialPlan) -> Bench:
    """The bench for one trial as a complete experiment."""
    experiment = bench.setting.experiment
    load = replace(experiment.load, duration_ns=plan.duration_ns)
    if plan.level.rate_per_s is None:
        load = replace(load, warmup_requests=None)  # their time depends on a rate
    lasting = replace(experiment, levels=(plan.level,), load=load)
    return replace(bench, setting=Setting(lasting, bench.setting.cpu_plan, bench.setting.limits))


def _seed(experiment: Experiment, plan: TrialPlan) -> int:
    """The seed depends only on the load and the trial: every server gets the same arrivals, and no
    two trials do."""
    return arrival_seed(experiment.seed, plan.level, plan.run)
