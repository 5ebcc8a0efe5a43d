"""The resources that a user's server used during a load: in the measurement, in the report and in
the output."""

from __future__ import annotations

import io
import socket
from pathlib import Path

import msgspec
import pytest
from jsonschema import Draft202012Validator
from rich.console import Console

from wsgiload.documents.codec import read, to_plain
from wsgiload.documents.load_report import LoadReport
from wsgiload.documents.schema import load_schema
from wsgiload.errors import UsageError
from wsgiload.limits.model import Counters
from wsgiload.report import print_load
from wsgiload.sampling.running_load import observing
from wsgiload.sampling.sampler import Sample

from .report_fixture import write_run

MIB = 1024 * 1024
NS_PER_S = 1_000_000_000


class Container:
    """A limit of two cores, one core used, and throttling in every second period."""

    source = "cgroup-v2"
    name = "/docker/c1"
    effective_limits = {  # noqa: RUF012
        "effective_cpus": 2.0,
        "effective_memory_bytes": 64.0 * MIB,
        "effective_pids": None,
    }

    def __init__(self, pids: list[int]) -> None:
        self.is_closed = False
        self._pids = pids

    def pids(self) -> list[int]:
        return self._pids

    def read_counters(self) -> Counters:
        return Counters()

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> LoadReport:
    run_dir = write_run(tmp_path_factory.mktemp("runs") / "run")
    report = read(LoadReport, run_dir / "load" / "waitress@3000#1.json")
    phases = msgspec.structs.replace(
        report.plan.phases, warmup_ns=2 * NS_PER_S, measure_ns=NS_PER_S
    )
    return msgspec.structs.replace(report, plan=msgspec.structs.replace(report.plan, phases=phases))


def samples_of(load: LoadReport) -> tuple[Sample, ...]:
    """From a second before the measurement to a second after it."""
    start_ns = load.clock.monotonic_ns + load.plan.phases.warmup_ns
    seconds = range(-1, load.measured_ns // NS_PER_S + 2)
    return tuple(
        Sample(
            start_ns + second * NS_PER_S,
            0,
            Counters(
                cpu_usage_ns=(second + 1) * NS_PER_S,
                memory_anon_bytes=(40 if second >= 0 else 50) * MIB,
                nr_periods=10 * second,
                nr_throttled=5 * second,
                oom_kill=0,
            ),
        )
        for second in seconds
    )


def test_resource_use_covers_only_the_measurement(load: LoadReport) -> None:
    with observing(Container([]), "http://127.0.0.1:9/") as observation:
        pass
    observation.samples = samples_of(load)
    resources = observation.resources(load)

    assert (resources.source, resources.name, resources.effective_cpus) == (
        "cgroup-v2",
        "/docker/c1",
        2.0,
    )

    used = resources.used
    assert used.cpu_cores_mean == pytest.approx(1)
    assert used.throttled_period_ratio == pytest.approx(0.5)
    assert (used.memory_peak_bytes, used.memory_mean_bytes) == (50 * MIB, 40 * MIB)

    report = msgspec.structs.replace(load, resources=resources)
    assert list(Draft202012Validator(load_schema("load-1")).iter_errors(to_plain(report))) == []

    console = Console(file=io.StringIO(), width=150, color_system=None)
    print_load(report, console)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().splitlines()[-1].rstrip() == (
        "server used: 1.00 CPU cores on average, 50 MiB peak memory, "
        "CPU-throttled in 50.0 % of the periods (cgroup-v2 /docker/c1)"
    )


def test_the_container_is_closed_after_an_error() -> None:
    container = Container([])
    with pytest.raises(UsageError), observing(container, "http://127.0.0.1:9/"):
        raise UsageError("no such load")
    assert container.is_closed


@pytest.mark.parametrize("is_owner", [True, False])
def test_the_accept_queue_is_read_only_if_the_server_owns_the_socket(is_owner: bool) -> None:
    own_pid = int(Path("/proc/self").readlink().name)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        with observing(Container([own_pid] if is_owner else [own_pid + 1]), url) as observation:
            pass
    queues = {sample.counters.listen_queue for sample in observation.samples}
    assert queues == ({0} if is_owner else {None})
