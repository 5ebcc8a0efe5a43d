"""One cell from its launch to its record: keep-alive probe, drive and sample, judge whether the server survived.

Whatever happens, what was measured until then is in the record; ``serve`` sees to it that nothing is left behind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from wsgiload import launch, readiness
from wsgiload.catalogue import ServerVariant
from wsgiload.contract import LaunchContext
from wsgiload.drive import drive
from wsgiload.errors import ServerError, WsgiloadError
from wsgiload.launch import ServerProcess
from wsgiload.limits import Backend, Janitor
from wsgiload.plan import Cell, load_plan, without_keepalive
from wsgiload.provision import Environment
from wsgiload.readiness import Expectation
from wsgiload.record import CellRecord, Failure, Setting
from wsgiload.sample import Sampler
from wsgiload.serve import Place, Served, Service, serving
from wsgiload.units import NS_PER_S

DEFAULT_THREADS = 4
# Connections that the probes open on top of what the load opens.
SPARE_CONNECTIONS = 16
USUAL_CONNECTIONS = 1_000


@dataclass(frozen=True, slots=True)
class Bench:
    """The place where the cells of a sweep are run: what they share, and the means to limit a server."""

    setting: Setting
    backend: Backend
    janitor: Janitor


def run_cell(cell: Cell, found: ServerVariant, environment: Environment, bench: Bench, log_path: Path) -> CellRecord:
    """Measure one cell. A failing server is a record with a failure; Ctrl-C is a record marked as interrupted."""
    setting, experiment = bench.setting, bench.setting.experiment
    record = CellRecord(cell, environment, notes=_environment_notes(environment))
    served = Served()
    expected = Expectation(experiment.request.first, experiment.ready_timeout_ns, experiment.load.timeout_ns)
    service = Service(found, environment, expected, log_path)
    port = experiment.port or launch.free_port()
    try:
        place = Place(setting.limits, bench.backend, bench.janitor)
        with serving(cell.id, service, place, _context(environment, setting, port), served) as server:
            _measure(server, port, setting, record)
            record.measured = True
    except KeyboardInterrupt:
        record.interrupted = True
    except WsgiloadError as error:
        record.failure = Failure.of(error)
    _take_over(served, record)
    return record


def _measure(server: ServerProcess, port: int, setting: Setting, record: CellRecord) -> None:
    experiment, cell = setting.experiment, record.cell
    request, load = experiment.request, experiment.load
    record.keepalive_honoured = readiness.keeps_connections(server, port, request.first, load.timeout_ns)
    if not record.keepalive_honoured and load.keepalive != "off":
        load = without_keepalive(load)
        record.notes.append(
            f"{server.found.id}: keep-alive not honoured, the server closes after each answer; "
            "measured with a new connection per request, so connecting is part of the response time"
        )
    url = f"http://{launch.HOST}:{port}{request.path}"
    sampler = Sampler(server.group, port=port)
    with sampler:
        try:
            plan = load_plan(url, request, load, cell.level, cell.seed)
            record.load = drive(plan, setting.cpu_plan, _has_died(server))
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


def _context(environment: Environment, setting: Setting, port: int) -> Callable[[Path], LaunchContext]:
    # As many processes as the limit has whole CPUs: the host's core count is nobody's budget.
    budget = setting.limits.cpus if setting.limits.cpus is not None else len(setting.cpu_plan.server_cpus)
    experiment = setting.experiment
    users = [level.connections for level in experiment.levels if level.connections is not None]
    most = max([experiment.load.max_connections or 0, *users, USUAL_CONNECTIONS])
    return lambda scratch: LaunchContext(
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
        max_connections=most + SPARE_CONNECTIONS,
        run_s=(experiment.load.load_ns + experiment.load.timeout_ns) / NS_PER_S,
    )


def _environment_notes(environment: Environment) -> list[str]:
    return [
        f"{environment.server} brings {conflict.name} {conflict.server_version} and is run with it; "
        f"the app's environment has {conflict.app_version}"
        for conflict in environment.conflicts
    ]


def _take_over(served: Served, record: CellRecord) -> None:
    """What the server's life showed; a server that fell to its memory limit at the very end failed by it too."""
    record.enforcement, record.ready_s = served.enforcement, served.ready_s
    record.server_exit, record.oom_kills = served.ended, served.oom_kills
    record.memory_peak_bytes = served.memory_peak_bytes
    if record.oom_kills and record.failure is None and record.measured:
        message = f"the kernel killed {record.oom_kills} process(es) of the server for want of memory; raise --memory"
        record.failure = Failure("load", message, "")
