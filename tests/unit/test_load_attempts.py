"""Reruns of a load: when it is repeated, which attempt is reported, and the maximum duration."""

from __future__ import annotations

from contextlib import ExitStack

import msgspec
import pytest

from wsgiload.attribution.host_disturbance import HostSeconds
from wsgiload.cli import _load_parts
from wsgiload.cli._live import LiveView
from wsgiload.cli._load_parts import Attempts
from wsgiload.documents.load_plan import LoadPlan, PrecisionTarget
from wsgiload.documents.load_report import LoadReport
from wsgiload.errors import UsageError
from wsgiload.report.load_screen import load_screen
from wsgiload.results.load_attempts import (
    Attempt,
    attempt_of,
    max_duration_s,
    needs_repeat,
    reported,
)
from wsgiload.units import NS_PER_S

from .filled import reason, times, verdict
from .load_report_fixture import SECONDS, healthy_report

replace = msgspec.structs.replace
MS = 1_000_000


def attempt(number: int, disturbed_s: float | None, p99_ms: int = 1, **parts: object) -> Attempt:
    response_times = replace(times(p99_ms * MS), quantiles={"0.99": p99_ms * MS})
    report = replace(healthy_report(), response_time_ns=response_times, **parts)
    host = None if disturbed_s is None else HostSeconds(disturbed_s, {})
    return attempt_of(report, number, host)


def invalid_by_host(check: str) -> dict[str, object]:
    return {"verdict": verdict("invalid", "host", reason(check, "invalid", "m", 2))}


def test_only_disturbances_by_the_host_cause_a_rerun() -> None:
    assert not needs_repeat([attempt(1, 0.0, p99_ms=900)])
    assert not needs_repeat([attempt(1, None)]), "the state of the host is unknown"
    assert not needs_repeat([attempt(1, SECONDS / 100)])
    assert needs_repeat([attempt(1, 1.0)])
    assert needs_repeat([attempt(1, 0.0, **invalid_by_host("steal"))])

    stalled = verdict("warn", "host", reason("client-stalls"))
    assert needs_repeat([attempt(1, 0.0, verdict=stalled)])

    overloaded = verdict("invalid", "server", reason("backlog", "invalid", "m", 2))
    assert not needs_repeat([attempt(1, 0.0, verdict=overloaded)])


def test_the_disturbed_share_refers_to_the_measured_time() -> None:
    """With --requests, a load may end earlier than planned."""
    short = attempt(1, 0.2, measured_ns=10 * NS_PER_S)
    assert short.disturbance == "other processes or the hypervisor disturbed 0.2 of 10 s"


def test_the_least_disturbed_attempt_is_reported_regardless_of_its_result() -> None:
    fast, slow, last = attempt(1, 3.0), attempt(2, 1.0, p99_ms=99), attempt(3, 5.0)
    report = reported([fast, slow, last]).report
    assert report.response_time_ns == slow.report.response_time_ns
    assert [entry.reported for entry in report.attempts] == [False, True, False]
    assert [entry.disturbed_s for entry in report.attempts] == [3.0, 1.0, 5.0]
    assert [entry.p99_ns for entry in report.attempts] == [1 * MS, 99 * MS, 1 * MS]
    assert [entry.rerun_reason for entry in report.attempts] == [
        f"other processes or the hypervisor disturbed {seconds} of 10 s" for seconds in (3, 1, 5)
    ]


def test_an_interrupted_attempt_is_reported_only_if_it_is_the_only_one() -> None:
    stopped = verdict("warn", "method", reason("interrupted"))
    disturbed, interrupted = attempt(1, 9.0), attempt(2, 0.0, verdict=stopped)
    assert reported([disturbed, interrupted]).cell is disturbed.cell
    assert reported([interrupted]).cell is interrupted.cell


def test_the_first_screen_names_the_reported_attempt_and_the_reason() -> None:
    second_reported = reported([attempt(1, 3.0), attempt(2, 0.0)]).report
    [line] = [text for text in load_screen(second_reported).cautions if "attempt" in text]
    assert line == (
        "attempt 2 of 2 is reported, because it was the least disturbed (attempt 1: other "
        "processes or the hypervisor disturbed 3 of 10 s)"
    )
    undisturbed = reported([attempt(1, 0.0)]).report
    assert not [text for text in load_screen(undisturbed).cautions if "attempt" in text]


def plan(**parts: object) -> LoadPlan:
    return replace(healthy_report().plan, timeout_ns=2 * NS_PER_S, **parts)


def test_the_maximum_duration_includes_all_attempts_and_waits() -> None:
    assert max_duration_s(plan(), 0) == SECONDS + 2
    assert max_duration_s(plan(), 2) == 3 * (SECONDS + 2) + 2 * 12
    extended = PrecisionTarget(quantile=0.99, half_width=0.05, max_duration_ns=60 * NS_PER_S)
    assert max_duration_s(plan(precision=extended), 1) == 2 * 62 + 12


class Loads:
    """Consecutive loads, each disturbed by the host for the given seconds."""

    def __init__(self, *disturbed: float | Exception | KeyboardInterrupt) -> None:
        self.disturbed = disturbed
        self.calls = 0

    def __call__(self, number: int) -> tuple[Attempt | None, bool]:
        self.calls += 1
        assert number == self.calls
        seconds = self.disturbed[number - 1]
        if isinstance(seconds, BaseException):
            raise seconds
        return attempt(number, seconds), False


def run_attempts(reruns: int, loads: Loads) -> Attempts:
    with ExitStack() as until_written:
        attempts = Attempts(reruns, LiveView(quiet=True), until_written)
        attempts.make(loads)
    return attempts


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Records the maximum waits for a quiet host instead of waiting."""
    waited: list[int] = []
    monkeypatch.setattr(_load_parts, "settle", lambda longest_ns, _: waited.append(longest_ns))
    return waited


@pytest.mark.parametrize(
    ("reruns", "disturbed", "count"),
    [
        (0, (5.0,), 1),
        (3, (0.0,), 1),
        (3, (5.0, 0.0), 2),
        (2, (5.0, 4.0, 6.0), 3),
    ],
)
def test_a_disturbed_load_is_repeated_up_to_the_maximum(
    waits: list[int], reruns: int, disturbed: tuple[float, ...], count: int
) -> None:
    attempts = run_attempts(reruns, Loads(*disturbed))
    assert len(attempts.made) == count
    assert not attempts.is_interrupted
    assert waits == [10 * NS_PER_S] * (count - 1)


def test_an_interrupt_during_a_rerun_keeps_the_earlier_attempts(waits: list[int]) -> None:
    attempts = run_attempts(3, Loads(5.0, KeyboardInterrupt()))
    assert len(attempts.made) == 1 and attempts.is_interrupted
    with pytest.raises(KeyboardInterrupt):
        run_attempts(3, Loads(KeyboardInterrupt()))


def test_a_failed_rerun_keeps_the_earlier_attempts(
    waits: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    attempts = run_attempts(3, Loads(5.0, UsageError("no process 7", "start it")))
    assert len(attempts.made) == 1 and not attempts.is_interrupted
    assert "the load could not be repeated: no process 7; start it" in capsys.readouterr().err


def test_reports_without_attempts_omit_them() -> None:
    report = healthy_report()
    assert report.attempts == ()
    assert b'"attempts"' not in msgspec.json.encode(report)
    assert msgspec.json.decode(msgspec.json.encode(report), type=LoadReport) == report
