"""One cell from its launch to its record. The only module that knows the order of the steps.

launch → ready → keep-alive probe → drive and sample → stop → record. Whatever happens, the server is stopped, its
group removed, and what was measured until then is kept.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from wsgiload import launch, readiness
from wsgiload.catalogue import ServerVariant
from wsgiload.contract import LaunchContext
from wsgiload.drive import drive
from wsgiload.errors import ServerError, WsgiloadError
from wsgiload.launch import ServerProcess
from wsgiload.limits import Backend, Janitor, LimitedGroup
from wsgiload.plan import Cell, load_plan, without_keepalive
from wsgiload.provision import Environment
from wsgiload.record import CellRecord, Failure, Setting
from wsgiload.sample import Sampler
from wsgiload.units import NS_PER_S

DEFAULT_THREADS = 4


@dataclass(frozen=True, slots=True)
class Bench:
    """The place where the cells of a sweep are run: what they share, and the means to limit a server."""

    setting: Setting
    backend: Backend
    janitor: Janitor


def run_cell(cell: Cell, found: ServerVariant, environment: Environment, bench: Bench, log_path: Path) -> CellRecord:
    """Measure one cell. A failing server is a record with a failure; Ctrl-C is a record marked as interrupted."""
    record = CellRecord(cell, environment)
    record.notes.extend(_environment_notes(environment))
    try:
        with ExitStack() as stack:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="wsgiload-")))
            group = bench.backend.create(bench.setting.limits, cell.id)
            stack.callback(_close, group, bench.janitor)
            bench.janitor.watch(group)
            record.enforcement = group.enforcement
            server = ServerProcess(found, group, log_path)
            stack.callback(_stop, server, record)
            try:
                _measure(server, environment, bench, record, scratch)
            except KeyboardInterrupt:
                record.interrupted = True  # before the way out, which then loses no time on a gentle stop
                raise
    except KeyboardInterrupt:
        record.interrupted = True
    except WsgiloadError as error:
        record.failure = Failure.of(error)
    return _with_late_kills(record)


def _measure(server: ServerProcess, environment: Environment, bench: Bench, record: CellRecord, scratch: Path) -> None:
    experiment, cell = bench.setting.experiment, record.cell
    port = experiment.port or launch.free_port()
    context = _launch_context(environment, bench.setting, port, scratch)
    server.start(environment, context)
    bench.janitor.watch(server.group)
    record.ready_s = readiness.wait_until_ready(server, port, experiment.request, experiment.ready_timeout_ns)
    record.keepalive_honoured = readiness.keeps_connections(port, experiment.request)
    load = experiment.load
    if not record.keepalive_honoured and load.keepalive != "off":
        load = without_keepalive(load)
        record.notes.append(
            f"{server.found.id}: keep-alive not honoured, the server closes after each answer; "
            "measured with a new connection per request, so connecting is part of the response time"
        )
    plan = load_plan(
        f"http://{launch.HOST}:{port}{experiment.request.path}",
        experiment.request,
        load,
        cell.level,
        cell.seed,
    )
    sampler = Sampler(server.group, port=port)
    with sampler:
        try:
            record.load = drive(plan, bench.setting.cpu_plan.client_cpus, _has_died(server))
        finally:
            record.samples = sampler.stop()
    _require_survived(server)


def _has_died(server: ServerProcess) -> Callable[[], bool]:
    return lambda: server.exit_code() is not None


def _require_survived(server: ServerProcess) -> None:
    kills = server.group.oom_kills()
    if kills:
        raise readiness.out_of_memory(server, kills, "under load", "load")
    if server.exit_code() is not None:
        raise ServerError(
            f"{server.found.id} {server.describe_exit()} under load",
            "the end of its log says why",
            step="load",
            log_tail=server.log_tail(),
        )


def _launch_context(environment: Environment, setting: Setting, port: int, scratch: Path) -> LaunchContext:
    # As many processes as the limit has whole CPUs: the host's core count is nobody's budget.
    budget = setting.limits.cpus if setting.limits.cpus is not None else len(setting.cpu_plan.server_cpus)
    experiment = setting.experiment
    most = experiment.load.max_connections
    connections = [level.connections for level in experiment.levels if level.connections is not None]
    return LaunchContext(
        python=environment.python,
        bin=environment.bin,
        host=launch.HOST,
        port=port,
        app=experiment.app,
        app_dir=experiment.app_dir,
        scratch_dir=scratch,
        workers=max(1, int(budget)),
        threads=DEFAULT_THREADS,
        backlog=launch.usual_backlog(),
        # The probes come on top of what the load opens.
        max_connections=max([most or 0, *connections, 1_000]) + 16,
        run_s=(experiment.load.load_ns + experiment.load.timeout_ns) / NS_PER_S,
    )


def _stop(server: ServerProcess, record: CellRecord) -> None:
    record.server_exit = server.stop(gently=not record.interrupted)
    # Counters outlive the processes until the group is removed, which comes next.
    record.oom_kills = server.group.oom_kills()
    record.memory_peak_bytes = server.group.memory_peak_bytes()


def _close(group: LimitedGroup, janitor: Janitor) -> None:
    group.close()
    janitor.release(group)


def _environment_notes(environment: Environment) -> list[str]:
    return [
        f"{environment.server} brings {conflict.name} {conflict.server_version} and is run with it; "
        f"the app's environment has {conflict.app_version}"
        for conflict in environment.conflicts
    ]


def _with_late_kills(record: CellRecord) -> CellRecord:
    """A server that fell to its memory limit after the last look at the counter still failed by it."""
    if record.oom_kills and record.failure is None and not record.interrupted:
        message = f"the kernel killed {record.oom_kills} process(es) of the server for want of memory; raise --memory"
        record.failure = Failure("load", message, "")
    return record
