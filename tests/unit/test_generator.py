"""The Python interface of the generator: it runs a plan, returns a report and checks options."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

import wsgiload
from wsgiload.cli import run
from wsgiload.documents.load_plan import LoadPlan
from wsgiload.documents.load_report import LoadReport
from wsgiload.errors import LoadError, UsageError
from wsgiload.host.cpus import CpuPlan, available_cpus
from wsgiload.loads import build
from wsgiload.loads import drive as driving
from wsgiload.loads.build import plan_warnings, require_possible
from wsgiload.loads.drive import drive
from wsgiload.loads.options import Level, LoadSettings, load_plan
from wsgiload.loads.request import Request

CORES = tuple(available_cpus())
CPU_PLAN = CpuPlan(CORES, CORES, shared_cores=True)


def plan(url: str = "http://127.0.0.1:9/") -> LoadPlan:
    settings = LoadSettings(duration_ns=300_000_000, arrivals="constant")
    return load_plan(url, Request(), settings, Level(rate_per_s=50.0), seed=1)


def test_a_plan_is_carried_out_and_its_start_reported() -> None:
    started: list[int] = []
    report = drive(plan(), CPU_PLAN, on_start=started.append)
    assert isinstance(report, LoadReport)
    assert report.outcomes.scheduled == 15
    assert report.plan.shares_cores
    assert len(started) == 1 and started[0] > 1


def endless(url: str = "http://127.0.0.1:9/") -> LoadPlan:
    short = plan(url)
    phases = msgspec.structs.replace(short.phases, measure_ns=3600 * 10**9)
    return msgspec.structs.replace(short, phases=phases)


def test_a_load_stops_early_on_request() -> None:
    report = drive(endless(), CPU_PLAN, should_stop=lambda: True)
    assert "interrupted" in {reason.check for reason in report.verdict.reasons}


# --- where each kind of load runs


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)
        yield listener


def url_of(listener: socket.socket) -> str:
    return f"http://127.0.0.1:{listener.getsockname()[1]}/"


def client_of(listener: socket.socket) -> int:
    """The process, this one or a child, that connects to this server and sends a request."""
    while True:
        connection, (_, port) = listener.accept()
        with connection:
            if not connection.recv(1):  # it was only tested whether something listens
                continue
            socket_file = f"socket:[{inode_of(port)}]"
            this = psutil.Process()
            pids = [this.pid, *(child.pid for child in this.children())]
            return next(pid for pid in pids if socket_file in open_files(pid))


def inode_of(port: int) -> str:
    """The inode of the socket with this local port, which closed connections may have, too."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
    return next(line[9] for line in lines if line[1].endswith(f":{port:04X}") and line[9] != "0")


def open_files(pid: int) -> set[str]:
    """Of all threads: each thread of the generator has its own table of open files."""
    files = set()
    for path in Path("/proc", str(pid), "task").glob("*/fd/*"):
        with suppress(FileNotFoundError):
            files.add(str(path.readlink()))
    return files


def test_a_load_of_an_experiment_runs_in_its_own_process(listener: socket.socket) -> None:
    started: list[int] = []
    clients: list[int] = []

    def look() -> bool:
        clients.append(client_of(listener))
        return True

    drive(endless(url_of(listener)), CPU_PLAN, look, started.append)
    assert clients == started != [os.getpid()]


def test_a_load_from_python_runs_in_the_calling_process(listener: socket.socket) -> None:
    with wsgiload.start(url_of(listener), connections=1):
        assert client_of(listener) == os.getpid()


def test_the_command_load_runs_the_load_in_its_own_process(listener: socket.socket) -> None:
    with ThreadPoolExecutor(1) as pool:
        client = pool.submit(client_of, listener)
        run(["load", url_of(listener), "--requests", "1", "--timeout", "30s", "--quiet"])
    assert client.result() == os.getpid()


def test_a_rejected_plan_is_a_load_error() -> None:
    with pytest.raises(LoadError, match="only http:// and https:// are supported"):
        drive(plan("ftp://127.0.0.1/"), CPU_PLAN)


def test_the_error_of_a_crashed_generator_contains_its_stderr(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class CrashingGenerator(subprocess.Popen[bytes]):
        def __init__(self, args: list[str], **options: Any) -> None:
            super().__init__(["/bin/sh", "-c", "echo no memory >&2; exit 7"], **options)

    monkeypatch.setattr(driving.subprocess, "Popen", CrashingGenerator)
    with pytest.raises(LoadError, match="exited with code 7 without a report: no memory"):
        drive(plan(), CPU_PLAN)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("kill -9 $$", "was killed by SIGKILL without a report: no error message"),
        ("exit 0", "exited with code 0 without a report: no error message"),
        ("echo '{'; exit 0", "exited with code 0 after 2 bytes of its report"),
    ],
)
def test_the_error_of_a_silent_generator_contains_its_exit_status(
    monkeypatch: pytest.MonkeyPatch, script: str, message: str
) -> None:
    class CrashingGenerator(subprocess.Popen[bytes]):
        def __init__(self, args: list[str], **options: Any) -> None:
            super().__init__(["/bin/sh", "-c", script], **options)

    monkeypatch.setattr(driving.subprocess, "Popen", CrashingGenerator)
    with pytest.raises(LoadError, match=message):
        drive(plan(), CPU_PLAN)


def test_the_generator_decides_whether_a_plan_is_possible() -> None:
    require_possible(plan())
    with pytest.raises(UsageError, match="plan: threads must"):
        require_possible(msgspec.structs.replace(plan(), threads=1000))


def test_warnings_of_the_generator_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[list[str], str]] = []

    def check_plan(text: str, given: list[str], open_by: str) -> list[str]:
        assert msgspec.json.decode(text, type=LoadPlan) == plan()
        calls.append((given, open_by))
        return ["--think-time has no effect in an open loop"]

    monkeypatch.setattr(build, "check_plan", check_plan)
    warnings = plan_warnings(plan(), ("rate", "think_time"), "--rates")

    assert warnings == ("--think-time has no effect in an open loop",)
    assert calls == [(["rate", "think_time"], "--rates")]
