"""The Python interface of the generator: it runs a plan, returns a report and checks options."""

from __future__ import annotations

import subprocess
from typing import Any

import msgspec
import pytest

from wsgiload.documents.load_plan import LoadPlan
from wsgiload.documents.load_report import LoadReport
from wsgiload.errors import LoadError, UsageError
from wsgiload.host.cpus import CpuPlan, available_cpus
from wsgiload.loads import drive as driving
from wsgiload.loads import generator
from wsgiload.loads.drive import LocalGenerator, drive
from wsgiload.loads.generator import Generator, plan_warnings, require_possible
from wsgiload.loads.options import Level, LoadSettings, load_plan
from wsgiload.loads.request import Request

from .load_report_fixture import stopped_report

CORES = tuple(available_cpus())
CPU_PLAN = CpuPlan(CORES, CORES, shared_cores=True)


def plan(url: str = "http://127.0.0.1:9/") -> LoadPlan:
    settings = LoadSettings(duration_ns=300_000_000, arrivals="constant")
    return load_plan(url, Request(), settings, Level(rate_per_s=50.0), seed=1)


def test_a_local_generator_runs_a_plan_and_reports_its_start() -> None:
    local: Generator = LocalGenerator(CPU_PLAN)
    started: list[int] = []
    report = local.carry_out(plan(), on_start=started.append)
    assert isinstance(report, LoadReport)
    assert report.outcomes.scheduled == 15
    assert report.plan.shares_cores
    assert len(started) == 1 and started[0] > 1


def test_a_load_stops_early_on_request() -> None:
    endless = msgspec.structs.replace(
        plan(), phases=msgspec.structs.replace(plan().phases, measure_ns=3600 * 10**9)
    )
    report = LocalGenerator(CPU_PLAN).carry_out(endless, should_stop=lambda: True)
    assert "interrupted" in {reason.check for reason in report.verdict.reasons}


def test_the_local_generator_can_be_replaced() -> None:
    """For example, by several generators on several hosts."""

    class Canned:
        def carry_out(self, plan: LoadPlan, *hooks: Any) -> LoadReport:
            return stopped_report()

    canned: Generator = Canned()
    assert canned.carry_out(plan()) is stopped_report()


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

    monkeypatch.setattr(generator, "check_plan", check_plan)
    warnings = plan_warnings(plan(), {"think_time", "rate"}, "--rates")

    assert warnings == ("--think-time has no effect in an open loop",)
    assert calls == [(["rate", "think_time"], "--rates")]
