"""A whole sweep: plan, provision, run and store every cell, write the report.

``cell`` runs single cells. This module prints nothing; it reports events to ``SweepEvents``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from wsgiload._loadgen import check_plan
from wsgiload.account import account_of
from wsgiload.analysis.attempts import (
    counted_attempt,
    is_discarded,
    is_disturbed,
    place_of,
    repeated,
)
from wsgiload.analysis.over_cells import analyse
from wsgiload.analysis.races import Track
from wsgiload.attribution.intervention import Half
from wsgiload.catalogue.budget import budget_of
from wsgiload.catalogue.names import ServerVariant
from wsgiload.doctor.checks import quick_checks
from wsgiload.doctor.settle import Patience, Settled, watch_host
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.codec import encode, to_plain
from wsgiload.documents.over_cells import InterventionResult
from wsgiload.documents.run_info import DoctorFinding, HostFacts, RunInfo
from wsgiload.documents.summary import Summary
from wsgiload.environments.provision import Environment
from wsgiload.environments.user_environment import Environments, provide
from wsgiload.errors import UsageError, WsgiloadError
from wsgiload.experiment.estimate import experiment_s, longest_s, remaining_s, repeats_s
from wsgiload.experiment.plan import Cell, Experiment, ResourceLimits, expand
from wsgiload.experiment.procedure import max_reruns
from wsgiload.experiment.settings import resolve_servers
from wsgiload.experiment.stored_secrets import NO_SECRETS, Secrets
from wsgiload.experiment.unused_settings import unused_settings
from wsgiload.host.cpus import CpuPlan, assign_cpus, available_cpus, pinned
from wsgiload.host.facts import host_facts, read_topology, revision_of
from wsgiload.host.memory_guard import lift_guard
from wsgiload.interrupts import uninterrupted
from wsgiload.limits import Limits
from wsgiload.loads.options import load_plan, lowered_default, require_descriptors
from wsgiload.program import command_line
from wsgiload.report import with_answer, write_html
from wsgiload.report.words import trial_words
from wsgiload.results.record import CellRecord, Setting, failure_of
from wsgiload.results.run_lock import exclusive
from wsgiload.results.store import RunDirectory
from wsgiload.results.stored_plan import (
    raw_plan,
    read_plan,
    read_summary,
    require_same_host,
    require_same_revision,
    require_same_versions,
    stored_plan,
)
from wsgiload.results.summary import (
    Status,
    SweepProgress,
    exit_code,
    summarise_cell,
    summarise_sweep,
)
from wsgiload.sampling.running_load import LoadEvents
from wsgiload.scratch import remove_stale_scratch
from wsgiload.serving import launch
from wsgiload.serving.concurrency import Concurrency
from wsgiload.serving.conformance import measure_concurrency
from wsgiload.serving.groups import Place, chosen_place
from wsgiload.serving.services import RunningService, ServiceContext, running_services
from wsgiload.sweeps.app_check import app_failure_of, environment_note, interpreters_of
from wsgiload.sweeps.cell import Bench, run_cell, run_launch
from wsgiload.sweeps.intervene import further_runs, intervene, lifted, require_liftable
from wsgiload.sweeps.outlook import Outlook, ranking_words
from wsgiload.sweeps.raced import NextLaunch, run_race


class SweepEvents(LoadEvents):
    """Progress events of a sweep. By default, they are ignored."""

    def message(self, text: str) -> None:
        """A line of text about the progress."""

    def cell_started(self, cell: Cell, place: int, count: int) -> None:
        """Cell ``place`` of ``count`` begins."""

    def outlook(self, outlook: Outlook) -> None:
        """What follows the cell that begins next; reported just before it begins."""

    def planned(self, count: int, seconds: float, longest_seconds: float) -> None:
        """The number of trials, their estimated duration, and the longer duration if the host is
        never quiet."""

    def estimated(self, seconds: float) -> None:
        """The estimated time that remains after a cell; reported just before its end."""

    def cell_ended(self, summary: CellResult, place: int, count: int) -> None:
        """The cell has ended; ``summary`` is its entry in summary.json."""

    def launch_started(self, launch: NextLaunch) -> None:
        """A launch of a race begins."""

    def launch_ended(self, results: Sequence[CellResult]) -> None:
        """A launch of a race has ended."""

    def intervention_started(self, cell: Cell, half: Half) -> None:
        """The cell is measured again, with or without its CPU limit."""

    def ended(self) -> None:
        """The last event. A cell that began and did not end was interrupted."""


@dataclass(frozen=True, slots=True)
class SweepResult:
    """A finished, failed or interrupted sweep; everything else is in its run directory."""

    run_dir: Path
    summary: Summary
    report: Path | None

    @property
    def exit_code(self) -> int:
        """The documented exit code, without thresholds."""
        return exit_code(self.summary)

    def to_dict(self) -> Mapping[str, Any]:
        """The content of summary.json as plain data, as documented in ``docs/metrics.md``."""
        return to_plain(self.summary)


@dataclass(frozen=True, slots=True)
class _Earlier:
    """The state of an interrupted run."""

    run_dir: Path
    order: list[str]
    cells: tuple[CellResult, ...]


@dataclass(slots=True)
class _Sweep:
    """A sweep in progress."""

    variants: Mapping[str, ServerVariant]
    order: tuple[Cell, ...]
    bench: Bench
    directory: RunDirectory
    events: SweepEvents
    cells: list[CellResult]
    concurrencies: dict[str, Concurrency | None] = field(default_factory=dict)
    interventions: tuple[InterventionResult, ...] | None = None
    patience: Patience = field(default_factory=Patience)
    # Before the first load, which would change them.
    host: HostFacts = field(default_factory=host_facts)
    findings: tuple[DoctorFinding, ...] = field(default_factory=lambda: tuple(quick_checks()))

    @property
    def experiment(self) -> Experiment:
        return self.bench.setting.experiment

    def summary(self, status: Status) -> Summary:
        summary = summarise_sweep(
            self.variants, self.bench.setting, SweepProgress(self.order, (), status, self.cells)
        )
        return msgspec.structs.replace(summary, interventions=self.interventions)

    def keep(self, record: CellRecord, status: Status) -> CellResult:
        """Store the cell and update the summary before the next cell begins."""
        self.directory.write_cell(
            record.cell.id, record.load, record.samples, record.processes, record.client
        )
        self.directory.write_services(record.cell.id, record.service_samples)
        result = summarise_cell(record, self.variants[record.cell.server], self.bench.setting)
        self.cells.append(result)
        self.directory.keep_cell(len(self.cells), result, lambda: self.summary(status))
        return result

    def attempts(self, cell: Cell) -> list[CellResult]:
        """The trials at this place in the plan."""
        return [trial for trial in self.cells if place_of(trial) == cell.id]

    def is_done(self, cell: Cell) -> bool:
        """Whether a valid trial exists, or no further one is allowed."""
        attempts = self.attempts(cell)
        if not attempts or len(attempts) > self.experiment.procedure.reruns:
            return bool(attempts)
        best = counted_attempt(attempts)
        return not self.may_repeat(best)

    def may_repeat(self, best: CellResult) -> bool:
        """Whether the best trial at a place is to be repeated. With several runs, every invalid
        trial is repeated. The number of repetitions is limited for single runs and for trials that
        the host only disturbed."""
        if self.experiment.runs > 1 and is_discarded(best):
            return True
        if not is_discarded(best) and not is_disturbed(best):
            return False
        return repeated(self.cells, self.experiment.runs) < max_reruns(len(self.order))

    def write_status(self, status: Status) -> Summary:
        summary = with_answer(analyse(self.summary(status)))
        self.directory.write_summary(summary)

        setting = self.bench.setting
        run = RunInfo(
            schema_version=1,
            started_utc=self.directory.started,
            status=status,
            plan=raw_plan(stored_plan(setting.experiment, self.order, setting.cpu_plan)),
            host=self.host,
            doctor=self.findings,
        )
        self.directory.write_run(run)
        return summary


def check_loads(experiment: Experiment) -> None:
    """Raise UsageError for a load that the generator cannot carry out, before anything is
    started."""
    for level in experiment.levels:
        url = f"http://127.0.0.1{experiment.request.path}"
        plan = load_plan(url, experiment.request, experiment.load, level, experiment.seed)
        require_descriptors(experiment.load, level)
        try:
            check_plan(encode(plan))
        except ValueError as error:
            raise UsageError(str(error)) from error


def plan_cpus(limits: ResourceLimits) -> tuple[CpuPlan, Limits]:
    """The cores of the server and of the generator, and the limits to enforce."""
    is_limited = limits.policy != "none"
    cpus = limits.cpus if is_limited else None
    cpu_plan = assign_cpus(
        available_cpus(),
        _require_available(cpus),
        limits.server_cpus,
        limits.client_cpus,
        read_topology(),
    )
    return cpu_plan, Limits(
        cpus=cpus,
        memory_bytes=limits.memory_bytes if is_limited else None,
        pids=limits.pids if is_limited else None,
        server_cpus=cpu_plan.server_cpus,
        policy=limits.policy,
        account=account_of(limits.user),
    )


def _require_available(cpus: float | None) -> float | None:
    if cpus is not None and cpus > len(available_cpus()):
        raise UsageError(
            f"--cpus {cpus:g} exceeds the {len(available_cpus())} CPUs of this machine",
            f"use --cpus {len(available_cpus())} or less",
        )
    return cpus


def run_sweep(
    experiment: Experiment,
    events: SweepEvents | None = None,
) -> SweepResult:
    """Measure every cell and write the run directory.

    Raises UsageError before anything starts if the plan cannot be used. A failed server is a cell
    with a failure; Ctrl-C ends the sweep with the results so far.
    """
    if not experiment.bundled:
        experiment = replace(experiment, app_revision=revision_of(experiment.app_dir))
    return _carry_out(experiment, events or SweepEvents(), None)


def resume_sweep(
    run_dir: Path,
    events: SweepEvents | None = None,
    slo: tuple[str, ...] = (),
    secrets: Secrets = NO_SECRETS,
) -> SweepResult:
    """Resume an interrupted experiment from its stored plan.

    ``slo`` replaces the stored objective, and
    ``secrets`` contains the values that were not stored. Raises UsageError if the run is complete,
    if another process writes it, or if the plan, the host or a version has changed.
    """
    with exclusive(run_dir):
        experiment, order, host = read_plan(run_dir, secrets)
        require_same_host(host, host_facts())
        require_same_revision(experiment)
        summary = read_summary(run_dir)
        if summary.status == "complete":
            raise UsageError(
                f"{run_dir} is complete; there is nothing to resume",
                f"see its results: {command_line('report', run_dir)}",
            )
        experiment = replace(experiment, slo=slo or experiment.slo)
        earlier = _Earlier(run_dir, order, summary.cells)
        return _carry_out(experiment, events or SweepEvents(), earlier)


def _directory(
    experiment: Experiment, earlier: _Earlier | None, order: Sequence[Cell]
) -> RunDirectory:
    if earlier is None:
        return RunDirectory(
            experiment.out,
            experiment.name,
            stores_secrets=experiment.store_secrets,
            is_resumable=True,
        )
    if [cell.id for cell in order] != earlier.order:
        raise UsageError(
            "--resume: the server catalogue has changed",
            "start a new run",
        )
    return RunDirectory.reopen(
        earlier.run_dir,
        {cell.id for cell in earlier.cells},
        stores_secrets=experiment.store_secrets,
    )


def _carry_out(
    experiment: Experiment,
    events: SweepEvents,
    earlier: _Earlier | None,
) -> SweepResult:
    experiment.without_secrets()  # before any text can contain them
    variants = resolve_servers(experiment)
    check_loads(experiment)
    cpu_plan, limits = plan_cpus(experiment.limits)
    if experiment.intervene is not None:
        require_liftable(limits, cpu_plan)
    launch.raise_fd_limit()
    remove_stale_scratch()
    if experiment.port is not None:
        launch.require_free_port(experiment.port)
    interpreters = interpreters_of(experiment, variants)
    for note in (environment_note(experiment, interpreters), lowered_default(experiment.load)):
        if note is not None:
            events.message(note)
    order = expand(experiment, tuple(variants))
    status: Status = "failed" if earlier is None else "interrupted"
    with (
        chosen_place(limits, events.message) as place,
        services_of(experiment, place, cpu_plan, events.message) as running,
        ExitStack() as stack,
    ):
        app_failure = app_failure_of(experiment, interpreters, place)
        directory = _directory(experiment, earlier, order)
        if earlier is None:  # ``resume_sweep`` has locked an existing directory
            stack.enter_context(exclusive(directory.path))
        setting = Setting(experiment, cpu_plan, limits)
        bench = Bench(setting, place.backend, place.janitor, running, events)
        cells = list(earlier.cells) if earlier is not None else []
        sweep = _Sweep(variants, order, bench, directory, events, cells)
        sweep.write_status(status)  # the state if nothing more can be written
        unused = unused_settings(experiment, variants)
        if unused is not None:
            events.message(unused)
        try:
            environments = provide(variants, interpreters, events.message, app_failure)
            require_same_versions(sweep.cells, _versions(environments))
            status = _run_cells(sweep, environments)
            if experiment.intervene is not None and status == "complete":
                status = _intervene(sweep, environments)
        except KeyboardInterrupt:
            status = "interrupted"
        except MemoryError:
            lift_guard()  # to store the results so far
            raise
        finally:
            events.ended()
            summary = sweep.write_status(status)
    report = write_html(directory.path) if sweep.cells else None
    return SweepResult(directory.path, summary, report)


def services_of(
    experiment: Experiment, place: Place, cpu_plan: CpuPlan, log: Callable[[str], None]
) -> AbstractContextManager[tuple[RunningService, ...]]:
    """The supporting services of an experiment, which run within the block."""
    context = ServiceContext(
        place=place,
        server_cpus=cpu_plan.server_cpus,
        client_cpus=cpu_plan.client_cpus,
        variables={**os.environ, **experiment.variables},
        timeout_ns=experiment.ready_timeout_ns,
    )
    return running_services(experiment.services, context, log)


def _versions(environments: Environments) -> dict[str, tuple[str | None, str | None]]:
    return {
        server: (environment.version, environment.python_version)
        for server, environment in environments.items()
        if isinstance(environment, Environment)
    }


def _run_cells(sweep: _Sweep, environments: Environments) -> Status:
    if sweep.experiment.is_race:
        return _run_race(sweep, environments)
    remaining = [cell for cell in sweep.order if not sweep.is_done(cell)]
    further = further_runs(sweep.order, sweep.experiment)
    _announce(sweep, remaining + further)
    began_s = time.monotonic()
    with pinned(sweep.bench.setting.cpu_plan.orchestrator_cpus):
        for number, cell in enumerate(remaining, start=1):

            def estimate(
                done: Sequence[Cell] = remaining[:number],
                rest: Sequence[Cell] = remaining[number:] + further,
            ) -> float:
                return remaining_s(done, time.monotonic() - began_s, rest, sweep.experiment)

            if not _run_place(sweep, cell, environments[cell.server], estimate):
                return "interrupted"
    return "complete"


def _run_race(sweep: _Sweep, environments: Environments) -> Status:
    """Carry out the launches that the procedure chooses."""

    def run(launch: NextLaunch) -> list[CellResult] | None:
        sweep.events.launch_started(launch)
        environment = environments[launch.cells[0].server]
        results = list[CellResult]()
        while remaining := [cell for cell in launch.cells if not sweep.attempts(cell)]:
            records = _launch(sweep, remaining, environment)
            measured = [one for one in records if one.measured or not one.interrupted]
            with uninterrupted():
                results += [sweep.keep(record, "interrupted") for record in measured]
            if any(one.interrupted for one in records):
                return None
        sweep.events.launch_ended(results)
        return results

    with pinned(sweep.bench.setting.cpu_plan.orchestrator_cpus):
        state = run_race(sweep.experiment, sweep.order, sweep.cells, run)
    return "interrupted" if state is None else "complete"


def _announce(sweep: _Sweep, planned: Sequence[Cell]) -> None:
    """Report the expected duration."""
    experiment = sweep.experiment
    longest = longest_s(planned, experiment) + repeats_s(planned, experiment)
    sweep.events.planned(len(planned), experiment_s(planned, experiment), longest)


def _run_place(
    sweep: _Sweep,
    cell: Cell,
    environment: Environment | WsgiloadError,
    estimate: Callable[[], float],
) -> bool:
    """Run one place of the plan, as often as necessary; False if an interrupt ends the sweep
    here."""
    place, count = sweep.order.index(cell) + 1, len(sweep.order)
    while not sweep.is_done(cell):
        trial = replace(cell, attempt=len(sweep.attempts(cell)) + 1)
        sweep.events.outlook(_outlook(sweep, cell))
        sweep.events.cell_started(trial, place, count)
        record = _run_one(sweep, trial, environment)
        if record.interrupted and not record.measured:
            return False
        with uninterrupted():
            summary = sweep.keep(record, "interrupted")
        sweep.events.estimated(estimate())
        sweep.events.cell_ended(summary, place, count)
        if record.interrupted:
            return place == count and sweep.is_done(cell)
    return True


def _outlook(sweep: _Sweep, cell: Cell) -> Outlook:
    """The next trial and the standings."""
    later = sweep.order[sweep.order.index(cell) + 1 :]
    upcoming = next((one for one in later if not sweep.is_done(one)), None)
    apps = {server: sweep.experiment.served(one.app).app for server, one in sweep.variants.items()}
    app, level = apps[cell.server], cell.level
    rivals = [server for server in sweep.variants if apps[server] == app]
    track = Track(level.rate_per_s, level.connections, app)
    return Outlook(upcoming, ranking_words(track, rivals, sweep.cells))


def _run_one(sweep: _Sweep, cell: Cell, environment: Environment | WsgiloadError) -> CellRecord:
    return _launch(sweep, [cell], environment)[0]


def _launch(
    sweep: _Sweep, cells: Sequence[Cell], environment: Environment | WsgiloadError
) -> list[CellRecord]:
    """Measure the cells of one launch, or only the first of them."""
    if isinstance(environment, WsgiloadError):
        return [CellRecord(cell, failure=failure_of(environment)) for cell in cells]
    first = cells[0]
    log_path, variant = sweep.directory.server_log(first.id), sweep.variants[first.server]
    try:
        settled = _settle(sweep, first.attempt)
        concurrency = _concurrency(sweep, variant, environment)
    except KeyboardInterrupt:
        return [CellRecord(first, environment, interrupted=True)]
    records = run_launch(cells, variant, environment, sweep.bench, log_path, concurrency)
    for record in records:
        record.settled = settled
    return records


def _settle(sweep: _Sweep, attempt: int = 1) -> Settled | None:
    experiment = sweep.experiment
    limit_ns = experiment.procedure.settle_before_ns(attempt)
    if not limit_ns:
        return None
    return sweep.patience.settle(limit_ns, lambda: watch_host(experiment.port))


def _intervene(sweep: _Sweep, environments: Environments) -> Status:
    """Measure every cell again in pairs, with the CPU limit and with it lifted."""
    benches = {
        "limited": sweep.bench,
        "lifted": replace(sweep.bench, setting=lifted(sweep.bench.setting)),
    }

    def run(cell: Cell, half: Half) -> CellResult:
        variant, environment = sweep.variants[cell.server], environments[cell.server]
        if isinstance(environment, WsgiloadError):
            record = CellRecord(cell, failure=failure_of(environment))
        else:
            _settle(sweep)
            sweep.events.message(
                f"{trial_words(cell.id)}, {'with' if half == 'limited' else 'without'} its CPU "
                "limit"
            )
            sweep.events.intervention_started(cell, half)
            record = run_cell(
                cell, variant, environment, benches[half], sweep.directory.server_log(cell.id)
            )
        if record.interrupted:
            raise KeyboardInterrupt
        with uninterrupted():
            sweep.directory.write_cell(
                cell.id, record.load, record.samples, record.processes, record.client
            )
            sweep.directory.write_services(cell.id, record.service_samples)
        return summarise_cell(record, variant, benches[half].setting)

    with pinned(sweep.bench.setting.cpu_plan.orchestrator_cpus):
        sweep.interventions, is_complete = intervene(sweep.order, sweep.experiment, run)
    return "complete" if is_complete else "interrupted"


def _concurrency(
    sweep: _Sweep, variant: ServerVariant, environment: Environment
) -> Concurrency | None:
    """The concurrency of a server in the stock profile, whose defaults decide it; measured before
    its first cell. None for other servers and after a failure."""
    profile, setting = variant.profile or sweep.experiment.profile, sweep.bench.setting
    if profile != "stock" or variant.server.user_server is not None:
        return None

    # The measurement always uses the app ``conformance``, so all apps share the result.
    server = replace(variant, app=None).id
    if server not in sweep.concurrencies:
        place = Place(setting.limits, sweep.bench.backend, sweep.bench.janitor)
        budget = budget_of(variant, setting.limits.cpus or 1, sweep.experiment.profile)
        try:
            sweep.concurrencies[server] = measure_concurrency(
                variant, environment, place, (profile, budget)
            )
        except WsgiloadError:
            sweep.concurrencies[server] = None  # the cell itself will report the failure
    return sweep.concurrencies[server]
