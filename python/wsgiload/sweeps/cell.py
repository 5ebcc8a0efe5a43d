"""One cell from launch to record: keep-alive probe, load, sampling, and a check that the server
survived.

The record contains everything that was measured, even after a failure; ``serving`` cleans up.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from wsgiload.attribution import Measured, attribute, host_of
from wsgiload.attribution.host_disturbance import host_seconds
from wsgiload.calibration.noise_floor import floor_of_plan
from wsgiload.catalogue.adjust import settings_notes
from wsgiload.catalogue.budget import budget_of
from wsgiload.catalogue.contract import LaunchContext
from wsgiload.catalogue.names import ServerVariant
from wsgiload.documents.cell_result import CellFailure
from wsgiload.environments.app_name import SHIM_APP, needs_shim, shim_folder
from wsgiload.environments.provision import Environment
from wsgiload.errors import ServerError, WsgiloadError
from wsgiload.experiment.plan import Cell, Experiment
from wsgiload.experiment.unused_settings import unused_settings
from wsgiload.findings.alarms import NO_KEEPALIVE
from wsgiload.limits import Backend, Janitor
from wsgiload.loads.drive import drive
from wsgiload.loads.options import KEPT_FLIGHTS, LoadSettings, load_plan, without_keepalive
from wsgiload.loads.precision import precision_sentence
from wsgiload.loads.request import Request
from wsgiload.results.record import CellRecord, ServiceSamples, Setting, failure_of
from wsgiload.sampling.external_counters import ExternalCounters, external_counters
from wsgiload.sampling.listen_queue import read_listen_queue
from wsgiload.sampling.processes import proportional_bytes
from wsgiload.sampling.running_load import LoadEvents, watched
from wsgiload.sampling.sampler import Sampler
from wsgiload.serving import launch, readiness
from wsgiload.serving.concurrency import Concurrency
from wsgiload.serving.exchange import probe_cache
from wsgiload.serving.groups import Place, list_processes
from wsgiload.serving.launch import ServerProcess
from wsgiload.serving.lifecycle import Served, Service, serving
from wsgiload.serving.readiness import Expectation
from wsgiload.serving.services import RunningService, require_alive
from wsgiload.units import NS_PER_S

# Connections that the probes open in addition to those of the load.
SPARE_CONNECTIONS = 16
USUAL_CONNECTIONS = 1_000


@dataclass(frozen=True, slots=True)
class Bench:
    """What the cells of a sweep share: settings, limit backend, services and progress events."""

    setting: Setting
    backend: Backend
    janitor: Janitor
    services: tuple[RunningService, ...] = ()
    events: LoadEvents = field(default_factory=LoadEvents)


def run_cell(
    cell: Cell,
    variant: ServerVariant,
    environment: Environment,
    bench: Bench,
    log_path: Path,
    concurrency: Concurrency | None = None,
) -> CellRecord:
    """Measure one cell. If the server fails, the record contains the failure; after Ctrl-C, it is
    marked as interrupted."""
    return run_launch([cell], variant, environment, bench, log_path, concurrency)[0]


def run_launch(
    cells: Sequence[Cell],
    variant: ServerVariant,
    environment: Environment,
    bench: Bench,
    log_path: Path,
    concurrency: Concurrency | None = None,
) -> list[CellRecord]:
    """Start the server once and measure these cells, one after the other. A failure or an overload,
    which would disturb the next cell, ends the launch, so there may be fewer records than cells."""
    setting, experiment = bench.setting, bench.setting.experiment
    request = experiment.served(variant.app).request

    def new_record(cell: Cell) -> CellRecord:
        notes = [*settings_notes(variant), *_environment_notes(environment)]
        record = CellRecord(cell, environment, notes=notes)
        if concurrency is not None:
            record.concurrency = concurrency.document()
            record.notes += concurrency.sentences(variant.id)
        return record

    records, served = [new_record(cells[0])], Served()
    expected = Expectation(
        readiness_request(variant, request), experiment.ready_timeout_ns, experiment.load.timeout_ns
    )
    port = experiment.port or launch.free_port()
    try:
        require_alive(bench.services)
        place = Place(setting.limits, bench.backend, bench.janitor)
        with external_counters(
            app_counts=experiment.bundled, owner=place.limits.account
        ) as counters:
            service = Service(variant, environment, expected, log_path, counters.variables)
            context = launch_context(variant, environment, setting, port)
            with serving(cells[0].id, service, place, context, served) as server:
                for cell in cells:
                    if cell is not cells[0]:
                        records.append(new_record(cell))
                    records[-1].enforcement = served.enforcement
                    _measure(server, port, bench, records[-1], counters)
                    records[-1].measured = True
                    if not _kept_up(records[-1]):
                        break
    except KeyboardInterrupt:
        records[-1].interrupted = True
    except WsgiloadError as error:
        records[-1].failure = _failure(error, variant, experiment)
    for record in records:
        _copy_server_facts(served, record, is_last=record is records[-1])
        measured = _measured(record, setting)
        record.attribution = attribute(measured)
        record.host = host_seconds(measured.load, host_of(measured))
    return records


def _kept_up(record: CellRecord) -> bool:
    """Whether no request of this load may be left for the next one."""
    load = record.load
    return load is not None and load.outcomes.ok == load.outcomes.scheduled


def _failure(error: WsgiloadError, variant: ServerVariant, experiment: Experiment) -> CellFailure:
    """The failure. If the server never became ready, the message includes settings in the app's
    folder that were not used."""
    failure = failure_of(error)
    unused = unused_settings(experiment, {variant.id: variant})
    if unused is None or failure.step != readiness.STEP:
        return failure
    return msgspec.structs.replace(failure, message=f"{failure.message}; {unused}")


def _measure(
    server: ServerProcess, port: int, bench: Bench, record: CellRecord, counters: ExternalCounters
) -> None:
    setting = bench.setting
    experiment, cell = setting.experiment, record.cell
    request, load = (
        experiment.served(server.variant.app).request,
        load_settings_of(server.variant, experiment.load_of(cell.level)),
    )
    queue = read_listen_queue(port)
    record.backlog = queue.backlog // queue.sockets if queue is not None else None
    record.keepalive_honoured = readiness.keeps_connections(
        server, port, request.first, load.timeout_ns
    )
    if not record.keepalive_honoured and load.keepalive != "off":
        load = without_keepalive(load)
        record.notes.append(
            f"{server.variant.id} {NO_KEEPALIVE}, so response times include connection setup"
        )
    url = f"http://{launch.HOST}:{port}{request.path}"
    record.pss_before_bytes = proportional_bytes(server.group.pids())
    sampler = Sampler(
        server.group, port=port, pids=server.group.pids, interval_ns=experiment.sample_interval_ns
    )
    before = counters.read()
    with sampler, _sampling(bench.services, record, experiment.sample_interval_ns):
        try:
            plan = msgspec.structs.replace(
                load_plan(url, request, load, cell.level, cell.seed),
                noise_floor=floor_of_plan(load.keepalive),
            )
            limits = _enforced_limits(bench, record)
            with watched(bench.events, plan, sampler, limits) as progress:
                record.load = drive(
                    plan,
                    setting.cpu_plan,
                    _has_died(server, bench.services),
                    sampler.watch_client,
                    progress,
                )
            record.external = counters.read().since(before)
        finally:
            record.samples = sampler.stop()
            record.processes, record.client = sampler.processes, sampler.client
            record.pss_after_bytes = proportional_bytes(server.group.pids())
    if not experiment.bundled:  # the caching of bundled apps is known
        record.cache = probe_cache((launch.HOST, port), request)
    if experiment.precision is not None and record.load is not None:
        record.notes.append(precision_sentence(record.load, experiment.precision))
    require_alive(bench.services)
    _require_survived(server, record)


def _enforced_limits(bench: Bench, record: CellRecord) -> tuple[float | None, int | None]:
    """The enforced limits on CPUs and memory; None if not enforced."""
    limits, enforcement = bench.setting.limits, record.enforcement
    missing = enforcement.not_enforced if enforcement is not None else ()
    return (
        None if "cpus" in missing else limits.cpus,
        None if "memory" in missing else limits.memory_bytes,
    )


def readiness_request(variant: ServerVariant, request: Request) -> Request:
    """The request that shows that a server is ready: the first request of the load, or the user's
    ``ready_path`` with the same header fields."""
    first, user_server = request.first, variant.server.user_server
    if user_server is None or user_server.ready_path is None:
        return first
    return Request(user_server.ready_path, headers=first.headers, statuses=tuple(range(200, 300)))


def load_settings_of(variant: ServerVariant, planned: LoadSettings) -> LoadSettings:
    """The load settings of a cell, with the variant's warm-up."""
    load = replace(planned.warmed(variant.variant.warmup_s), keep_flights=KEPT_FLIGHTS)
    if variant.requested_keepalive is not None:
        load = replace(load, keepalive=variant.requested_keepalive)
    return load


@contextmanager
def _sampling(
    services: Sequence[RunningService], record: CellRecord, interval_ns: int
) -> Iterator[None]:
    """Sample the supporting services within the block."""
    with ExitStack() as stack:
        samplers = [Sampler(one.group, interval_ns=interval_ns) for one in services]
        for sampler in samplers:
            stack.enter_context(sampler)
        try:
            yield
        finally:
            record.services = [
                ServiceSamples(service, sampler.stop())
                for service, sampler in zip(services, samplers, strict=True)
            ]


def _has_died(server: ServerProcess, services: Sequence[RunningService]) -> Callable[[], bool]:
    def has_died() -> bool:
        return server.exit_code() is not None or any(one.has_ended() for one in services)

    return has_died


def _require_survived(server: ServerProcess, record: CellRecord) -> None:
    kills = server.group.oom_kills()
    if kills:
        raise readiness.out_of_memory(server, kills, _under_load(server, record), "load")
    if server.exit_code() is not None:
        raise readiness.out_of_processes(server, "load") or ServerError(
            f"{server.variant.id} {server.describe_exit()} under load",
            "see the end of its log",
            step="load",
            log_tail=server.log_tail(),
        )


def _under_load(server: ServerProcess, record: CellRecord) -> str:
    """When the server was OOM-killed. If the main process survives and restarts its workers, only
    the time without a correct response shows the kill."""
    unhealthy_s = record.unhealthy_s()
    if server.exit_code() is not None or unhealthy_s is None:
        return "under load"
    return (
        f"under load; its main process survived, but no request got a correct response for "
        f"{unhealthy_s:g} s"
    )


def launch_context(
    variant: ServerVariant, environment: Environment, setting: Setting, port: int
) -> Callable[[Path], LaunchContext]:
    """A function that returns the launch parameters for a server file, given the folder for its
    files."""
    experiment = setting.experiment
    profile = variant.profile or experiment.profile
    is_tuned = profile == "tuned"
    # The requested CPU limit, not the enforced one: a server whose limit is lifted keeps its size.
    requested_cpus = experiment.limits.cpus if experiment.limits.policy != "none" else None
    cpus = requested_cpus if requested_cpus is not None else len(setting.cpu_plan.server_cpus)
    budget, served = budget_of(variant, cpus, profile), experiment.served(variant.app)
    users = [level.connections for level in experiment.levels if level.connections is not None]
    max_load_ns = max(experiment.load.load_ns_at(level) for level in experiment.levels)
    max_load_connections = max([experiment.load.max_connections or 0, *users, USUAL_CONNECTIONS])
    # The user's command names its app itself, and a bundled app needs no other folder.
    app = served.app or ""
    pythonpath = experiment.pythonpath if variant.app is None else ()
    is_shimmed = variant.server.user_server is None and needs_shim(app, served.app_dir, pythonpath)
    return lambda scratch: LaunchContext(
        python=environment.python,
        bin=environment.bin,
        host=launch.HOST,
        port=port,
        app=SHIM_APP if is_shimmed else app,
        app_dir=served.app_dir,
        scratch_dir=scratch,
        shim_dir=shim_folder(app, served.app_dir, scratch, pythonpath) if is_shimmed else None,
        workers=budget.workers,
        threads=budget.threads,
        backlog=launch.tuned_backlog() if is_tuned else None,
        max_connections=max_load_connections + SPARE_CONNECTIONS if is_tuned else None,
        profile=profile,
        run_s=(max_load_ns + experiment.load.timeout_ns) / NS_PER_S,
        version=environment.version,
    )


def _measured(record: CellRecord, setting: Setting) -> Measured:
    read_back = record.enforcement.read_back if record.enforcement is not None else {}
    period_us = read_back.get("cpu_period_us")
    return Measured(
        load=record.load,
        samples=record.samples,
        processes=record.processes,
        client=record.client,
        cpus=os.cpu_count() or 1,
        backlog=record.backlog,
        oom_kills=record.oom_kills,
        shared_cores=setting.cpu_plan.shared_cores,
        period_us=period_us if isinstance(period_us, int) else None,
        kernel_listen_drops=record.kernel_listen_drops,
        services=[one.samples for one in record.services],
    )


def _environment_notes(environment: Environment) -> list[str]:
    return [
        f"{environment.server} was measured with {conflict.name} {conflict.server_version}; "
        f"your app's environment has {conflict.app_version}"
        for conflict in environment.conflicts
    ]


def _copy_server_facts(served: Served, record: CellRecord, *, is_last: bool) -> None:
    """Copy the facts about the server's run into the record. An OOM kill after the last measurement
    is a failure, too; before it, each measurement has checked for one."""
    record.enforcement, record.ready_s = served.enforcement, served.ready_s
    record.settings = served.settings
    record.server_exit, record.oom_kills = served.ended, served.oom_kills if is_last else 0
    record.starting_peak_bytes = served.starting_peak_bytes
    if served.escaped:
        record.notes.append(
            "processes left the server's control group, where they are neither limited nor "
            f"measured: {list_processes(served.escaped)}; they were ended"
        )
    if record.oom_kills and record.failure is None and record.measured:
        processes = "1 process" if record.oom_kills == 1 else f"{record.oom_kills} processes"
        message = f"the kernel OOM-killed {processes} of the server; raise --memory"
        record.failure = CellFailure(step="load", message=message, log_tail="")
