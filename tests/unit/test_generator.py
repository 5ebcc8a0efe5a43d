"""The seam to the generator: a plan goes in, a report comes out, and what it says of options."""

from __future__ import annotations

import subprocess
from typing import Any

import msgspec
import pytest

from wsgiload import _loadgen
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


def test_a_local_generator_carries_out_a_plan_and_tells_when_it_starts() -> None:
    local: Generator = LocalGenerator(CPU_PLAN)
    started: list[int] = []
    report = local.carry_out(plan(), on_start=started.append)
    assert isinstance(report, LoadReport)
    assert report.outcomes.scheduled == 15
    assert report.plan.shares_cores
    assert len(started) == 1 and started[0] > 1


def test_it_ends_early_on_request() -> None:
    endless = msgspec.structs.replace(
        plan(), phases=msgspec.structs.replace(plan().phases, measure_ns=3600 * 10**9)
    )
    report = LocalGenerator(CPU_PLAN).carry_out(endless, should_stop=lambda: True)
    assert "interrupted" in {reason.check for reason in report.verdict.reasons}


def test_any_other_implementation_can_take_its_place() -> None:
    """Several generators on several hosts only have to take a plan and return a report."""

    class Canned:
        def carry_out(self, plan: LoadPlan, *hooks: Any) -> LoadReport:
            return stopped_report()

    canned: Generator = Canned()
    assert canned.carry_out(plan()) is stopped_report()


def test_a_plan_that_it_refuses_is_an_error_of_the_load() -> None:
    with pytest.raises(LoadError, match="only http:// and https:// are supported"):
        drive(plan("ftp://127.0.0.1/"), CPU_PLAN)


def test_a_generator_that_dies_is_an_error_with_its_last_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Dying(subprocess.Popen[bytes]):
        def __init__(self, words: list[str], **options: Any) -> None:
            super().__init__(["/bin/sh", "-c", "echo no memory >&2; exit 7"], **options)

    monkeypatch.setattr(driving.subprocess, "Popen", Dying)
    with pytest.raises(LoadError, match="exited with code 7 without a report: no memory"):
        drive(plan(), CPU_PLAN)


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("kill -9 $$", "was killed by SIGKILL without a report: no error message"),
        ("exit 0", "exited with code 0 without a report: no error message"),
        ("echo '{'; exit 0", "exited with code 0 after 2 bytes of its report"),
    ],
)
def test_a_generator_that_says_nothing_is_described(
    monkeypatch: pytest.MonkeyPatch, script: str, says: str
) -> None:
    class Dying(subprocess.Popen[bytes]):
        def __init__(self, words: list[str], **options: Any) -> None:
            super().__init__(["/bin/sh", "-c", script], **options)

    monkeypatch.setattr(driving.subprocess, "Popen", Dying)
    with pytest.raises(LoadError, match=says):
        drive(plan(), CPU_PLAN)


def test_what_is_possible_is_decided_by_the_generator() -> None:
    require_possible(plan())
    with pytest.raises(UsageError, match="plan: threads must"):
        require_possible(msgspec.structs.replace(plan(), threads=1000))


def test_its_warnings_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[list[str], str]] = []

    def check_plan(text: str, given: list[str], open_by: str) -> list[str]:
        assert msgspec.json.decode(text, type=LoadPlan) == plan()
        calls.append((given, open_by))
        return ["--think-time has no effect in an open loop"]

    monkeypatch.setattr(generator, "check_plan", check_plan)
    monkeypatch.setattr(_loadgen, "check_catalogue", lambda: "[]", raising=False)
    warnings = plan_warnings(plan(), {"think_time", "rate"}, "--rates")
    assert warnings == ("--think-time has no effect in an open loop",)
    assert calls == [(["rate", "think_time"], "--rates")]
