"""Supporting services: tables, start and stop around a sweep, and the service as the bottleneck."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import pytest

from wsgiload import SupportingService
from wsgiload.attribution import other_cpu_ratio
from wsgiload.cli import run
from wsgiload.documents.cell_result import ServiceUse
from wsgiload.errors import ServerError, UsageError
from wsgiload.experiment.build import SweepSpec, experiment_of
from wsgiload.experiment.own_servers import supporting_services_of
from wsgiload.experiment.redaction import redacted
from wsgiload.findings.services import are_all_idle, bottleneck_and_fix, busy_service
from wsgiload.host.cpus import CpuPlan
from wsgiload.limits import Janitor, Limits
from wsgiload.limits.model import Counters
from wsgiload.limits.unlimited import UnlimitedBackend, UnlimitedGroup
from wsgiload.report.cells import Cell, read_sweep
from wsgiload.report.grids import service_columns
from wsgiload.results.stored_plan import raw_plan, revive, stored_plan
from wsgiload.sampling.processes import ClientUsage
from wsgiload.sampling.sampler import Sample
from wsgiload.serving.groups import Place
from wsgiload.serving.launch import free_port
from wsgiload.serving.services import ServiceContext, running_services

from .filled import filled_cell, filled_summary, resources

S = 1_000_000_000
SLEEP = f"{sys.executable} -c 'import time; time.sleep(60)'"


class Group(UnlimitedGroup):
    """A group that does not change the test's own process."""

    def spawn(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: IO[bytes]
    ) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(argv, env=env, cwd=cwd, stdout=log, stderr=log)
        self._processes.append(process)
        return process

    def pids(self) -> list[int]:
        return [one.pid for one in self._processes if one.poll() is None]

    def kill(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()


class Backend(UnlimitedBackend):
    def create(self, limits: Limits, label: str) -> Group:
        assert limits.requested() == ()
        return Group(label, limits, ())


@pytest.fixture
def context() -> Iterator[ServiceContext]:
    limits = Limits(cpus=1.0, memory_bytes=1 << 29, pids=9)
    with Janitor() as janitor:
        place = Place(limits, Backend(), janitor)
        yield ServiceContext(place, (0,), (0,), dict(os.environ), timeout_ns=20 * S)


def service(folder: Path, command: str = SLEEP, **options: Any) -> SupportingService:
    return SupportingService(command=command, cwd=str(folder), **options)


def use(
    cores: float | None, cpus: float = 1.0, *, shares: bool = False, waited: float | None = None
) -> ServiceUse:
    used = resources(cpu_cores_mean=cores, memory_peak_bytes=1 << 20, psi_cpu_some_ratio=waited)
    return ServiceUse(name="db", cpus=cpus, shares_server_cores=shares, resources=used)


def test_tables_are_shown_by_a_dry_run_and_stored_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    table = f'[services.db]\ncommand = "{sys.executable} -c 1"\nready = 5433\n'
    (tmp_path / "wsgiload.toml").write_text(table + 'env = { PGPASSWORD = "hush" }\n')
    assert run(["sweep", "--servers", "waitress", "--dry-run", "--json", "-"]) == 0
    printed = capsys.readouterr().out
    db = json.loads(printed)["services"]["db"]

    assert (db["ready"], db["cwd"], db["env"]) == (
        5433,
        str(tmp_path),
        {"PGPASSWORD": redacted("hush")},
    )
    assert "hush" not in printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[services.db]\ncomand = 'a'\n",
            "wsgiload.toml: [services.db]: unknown key 'comand'; did",
        ),
        ("[services.db]\nready = 1.5\n", "[services.db]: ready must be a port, or a command"),
        ("[services.db]\n", "[services.db] needs either command or attach; give one of them"),
        ("[services]\ndb = 1\n", "[services]: 'db' is not a table; write [services.db]"),
    ],
)
def test_an_invalid_table_is_a_one_line_error(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wsgiload.toml").write_text(text)
    assert run(["sweep", "--dry-run", "--json", "-"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"command": "no-such-database"}, "command of [services.db]: there is no program 'no-such"),
        ({"command": "./db"}, "there is no program ./db in"),
        ({"command": SLEEP, "attach": 1}, "[services.db] needs either command or attach"),
        ({"command": SLEEP, "ready": 0}, "[services.db]: ready = 0 is not a port"),
        ({"command": SLEEP, "ready": "no-such-check"}, "ready of [services.db]: there is no prog"),
        ({"command": SLEEP, "cwd": "gone"}, "gone does not exist; correct its cwd"),
        ({"command": SLEEP, "stop_signal": "SIGHALT"}, "'SIGHALT' is not a signal"),
    ],
)
def test_a_service_that_cannot_start_is_refused(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        supporting_services_of({"db": SupportingService(**options)}, tmp_path, {})


def test_a_stored_plan_restores_its_services(tmp_path: Path) -> None:
    services = {"db": SupportingService(command=SLEEP, ready=5433), "cache": attached()}
    experiment = experiment_of(SweepSpec(services=services))
    stored = revive(raw_plan(stored_plan(experiment, (), CpuPlan((0,), (0,), shared_cores=True))))
    assert stored.with_secrets({}).services == experiment.services


def attached() -> SupportingService:
    return SupportingService(attach=os.getpid())


def test_services_are_ready_before_the_block_and_stopped_after_it(
    tmp_path: Path, context: ServiceContext
) -> None:
    port = free_port()
    serve = f"{sys.executable} -m http.server {port} --bind 127.0.0.1"
    check = f"{sys.executable} -c 'import os; raise SystemExit(not os.path.exists(\"made\"))'"
    make = f'{sys.executable} -c \'import time; open("made", "w"); time.sleep(60)\''
    services = {
        "web": service(tmp_path, serve, ready=port),
        "db": service(tmp_path, make, ready=check),
    }

    with running_services(services, context, print) as running:
        assert [one.name for one in running] == ["web", "db"]
        assert (tmp_path / "made").exists()
        assert [one.has_ended() for one in running] == [None, None]
        assert all(one.cpus and one.group.pids() for one in running)

    assert all(one.group.pids() == [] for one in running)


def test_a_service_that_exits_is_reported_with_its_output(
    tmp_path: Path, context: ServiceContext
) -> None:
    broken = service(tmp_path, f"{sys.executable} -c 'raise SystemExit(\"no data\")'", ready=1)
    message = "the service db exited with code 1: no data; correct"
    with pytest.raises(ServerError, match=message) as raised:
        start(context, broken)
    assert raised.value.step == "service"

    with running_services({"db": service(tmp_path)}, context, print) as (db,):
        db.require_alive()
        os.kill(db.group.pids()[0], 9)
        while db.has_ended() is None:
            pass
        with pytest.raises(ServerError, match="the service db was killed by SIGKILL: without out"):
            db.require_alive()


def start(context: ServiceContext, one: SupportingService) -> None:
    with running_services({"db": one}, context, print):
        pytest.fail("the service is not ready")


def test_a_service_that_is_never_ready_is_reported_with_its_check(
    tmp_path: Path, context: ServiceContext
) -> None:
    impatient = ServiceContext(context.place, (0,), (0,), context.variables, timeout_ns=S // 5)
    message = re.escape("the service db was not ready within 0.2 s (port 1); correct [services.db]")
    with pytest.raises(ServerError, match=message):
        start(impatient, service(tmp_path, ready=1))


@pytest.mark.parametrize(
    ("service_use", "server", "message"),
    [
        (use(0.95), 0.4, "db used 0.95 of its 1 CPU core and the server only 0.40; db is the"),
        (use(0.6, shares=True), 0.35, "db used 0.60 cores and the server 0.35 (they share 1 core)"),
        (use(0.35, shares=True), 0.6, None),
        (use(0.95), 0.95, None),
        (use(0.95, cpus=2.0), 0.4, None),
        (use(None), 0.4, None),
        (
            use(0.17, shares=True, waited=0.99),
            0.09,
            "db used 0.17 cores and the server 0.09, but db waited for a CPU 99 % of the time; db",
        ),
        (use(0.17, waited=0.95), 0.09, "db used 0.17 cores and the server 0.09, but db waited"),
        (use(0.17, shares=True, waited=0.99), 0.2, None),
        (use(0.17, waited=0.6), 0.09, None),
    ],
)
def test_a_service_is_the_bottleneck_if_only_it_has_no_cpu_time_left(
    service_use: ServiceUse, server: float, message: str | None
) -> None:
    alarm = busy_service([service_use], server, 1.0)
    assert (alarm is not None) == (message is not None)
    if alarm is not None and message is not None:
        assert alarm.message.startswith(message)
        assert "give db more cores" in str(alarm.fix)


def test_an_idle_server_waits_for_its_pool_if_no_service_is_busy() -> None:
    bottleneck, fix = bottleneck_and_fix([use(0.2)], 0.3, 1.0)

    assert (
        bottleneck == "threads or the connection pool are the bottleneck (db used 0.20 of 1 cores)"
    )
    assert "connection pool" in fix
    assert (
        bottleneck_and_fix([use(0.95)], 0.3, 1.0)[0]
        == "a service that has no CPU time left is the bottleneck"
    )
    assert (
        bottleneck_and_fix([use(0.2, waited=0.95)], 0.1, 1.0)[0]
        == "a service that has no CPU time left is the bottleneck"
    )
    assert are_all_idle([use(0.2, waited=0.1)], 0.1, 1.0)
    assert not are_all_idle([use(0.2, waited=0.6)], 0.1, 1.0)
    assert (
        bottleneck_and_fix([], 0.3, 1.0)[0]
        == "threads, connections or a backend are the bottleneck"
    )


def test_the_cpu_time_of_a_service_is_not_that_of_other_processes() -> None:
    def sample(t_s: int, **counters: int) -> Sample:
        return Sample(t_s * S, 0, Counters(**counters))

    server = [sample(t, host_busy_ns=t * 2 * S, cpu_usage_ns=t * S // 2) for t in (0, 1, 2)]
    database = [sample(t, cpu_usage_ns=t * S) for t in (0, 1, 2)]
    client = [ClientUsage(t_ns=t * S, **client_counters(t)) for t in (0, 2)]
    without_service = other_cpu_ratio(server, client, 2)
    with_service = other_cpu_ratio(server, client, 2, [database])
    assert without_service is not None and with_service is not None
    assert without_service - with_service == pytest.approx(0.5)


def client_counters(t_s: int) -> dict[str, int]:
    names = [name for name in ClientUsage.__dataclass_fields__ if name != "t_ns"]
    return dict.fromkeys(names, 0) | {"cpu_ns": t_s * S // 4}


def test_the_tables_show_a_service_next_to_the_server() -> None:
    cell = filled_cell(id="a@50#1", rate=50.0, services=(use(0.25),))
    sweep = read_sweep(filled_summary({"servers": ("a",)}, [cell]))
    columns = dict(service_columns(sweep))
    assert list(columns) == ["db CPU cores", "db memory"]
    assert [value_of(Cell(cell)) for value_of in columns.values()] == ["0.25", "1 MiB"]
    other = Cell(filled_cell(id="b@50#1", rate=50.0))
    assert [value_of(other) for value_of in columns.values()] == ["–", "–"]
