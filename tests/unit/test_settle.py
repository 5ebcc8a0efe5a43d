"""Waiting for a quiet host: which host is quiet, and how long the wait takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from wsgiload.doctor.settle import HostState, Patience, Settled, disturbances, settle, watch_host
from wsgiload.experiment.procedure import Procedure, usual_procedure
from wsgiload.units import NS_PER_S

QUIET = HostState(0.99, 0.2, 3)
BUSY = HostState(0.4, 30.0, 3)


class FakeTime:
    """A fake clock that advances only by observations and pauses."""

    def __init__(self, states: list[HostState]) -> None:
        self.now_ns = 0
        self.states: Iterator[HostState] = iter(states)
        self.observations = 0

    def look(self) -> HostState:
        self.now_ns += 2 * NS_PER_S
        self.observations += 1
        return next(self.states, BUSY)

    def pause(self, seconds: float) -> None:
        self.now_ns += round(seconds * NS_PER_S)

    def settle(self, longest_s: float) -> tuple[float, tuple[str, ...]]:
        settled = settle(round(longest_s * NS_PER_S), self.look, lambda: self.now_ns, self.pause)
        return settled.waited_s, settled.disturbances


@pytest.mark.parametrize(
    ("state", "count"),
    [
        (QUIET, 0),
        (HostState(0.96, 0.99, 999), 0),
        (HostState(0.95, 0.2, 3), 1),
        (HostState(0.99, 1.0, 3), 1),
        (HostState(0.99, 0.2, 1000), 1),
        (HostState(None, None, None), 0),
        (HostState(0.5, 80.0, 5000), 3),
    ],
)
def test_a_quiet_host_is_idle_without_pressure_and_time_wait(state: HostState, count: int) -> None:
    assert len(disturbances(state)) == count


def test_each_disturbance_is_reported_with_its_value() -> None:
    text = " and ".join(disturbances(HostState(0.43, 12.5, 2048)))
    assert "CPUs were only 43 % idle" in text
    assert "12.5 %" in text and "2,048 connections" in text


def test_the_wait_on_a_quiet_host_is_five_seconds() -> None:
    assert FakeTime([QUIET] * 9).settle(120) == (6.0, ())


def test_the_wait_on_a_busy_host_ends_when_it_is_quiet() -> None:
    assert FakeTime([BUSY] * 5 + [QUIET] * 9).settle(120) == (12.0, ())


def test_a_host_that_is_never_quiet_is_reported_after_the_maximum_wait() -> None:
    waited_s, messages = FakeTime([]).settle(120)
    assert (waited_s, len(messages)) == (120.0, 2)


def test_a_short_wait_is_one_observation() -> None:
    time = FakeTime([QUIET])
    assert (time.settle(1), time.observations) == ((2.0, ()), 1)


def test_after_several_unsuccessful_waits_the_wait_is_the_minimum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits_s: list[float] = []
    quiet_trials = {5, 6}

    def wait(longest_ns: int, look: Callable[[], HostState]) -> Settled:
        waits_s.append(longest_ns / NS_PER_S)
        return Settled(0.0, () if len(waits_s) in quiet_trials else ("CPUs were only 3 % idle",))

    monkeypatch.setattr("wsgiload.doctor.settle.settle", wait)
    patience = Patience()
    for _ in range(10):
        patience.settle(120 * NS_PER_S, fail_if_observed)
    assert waits_s == [120, 120, 120, 5, 5, 120, 120, 120, 120, 5]

    patience.settle(NS_PER_S, fail_if_observed)
    assert waits_s[-1] == 1


def fail_if_observed() -> HostState:
    raise AssertionError("the host must not be observed in this test")


def test_this_host_can_be_observed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wsgiload.doctor.settle.time.sleep", lambda seconds: None)
    state = watch_host(80)
    assert state.idle_share is None or 0 <= state.idle_share <= 1
    assert state.time_wait is None or state.time_wait >= 0


def write_proc(root: Path, *, busy: int, idle: int, waited_us: int = 0) -> None:
    (root / "proc" / "pressure").mkdir(parents=True, exist_ok=True)
    (root / "proc" / "net").mkdir(parents=True, exist_ok=True)

    (root / "proc" / "stat").write_text(f"cpu  {busy} 0 0 {idle} 0 0 0 0 0 0\n")
    (root / "proc" / "pressure" / "cpu").write_text(
        f"some avg10=60.00 avg60=9.00 avg300=1.00 total={waited_us}\n"
    )

    rows = [
        "head",
        *["0: 0100007F:1F90 0100007F:9C40 06 0"] * 3,
        "1: 0100007F:9C40 0100007F:1F90 01 0",
    ]
    (root / "proc" / "net" / "tcp").write_text("\n".join(rows))


def test_the_state_of_the_host_is_read_from_proc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_proc(tmp_path, busy=100, idle=100)
    now_ns = iter(range(0, 100 * NS_PER_S, 2 * NS_PER_S))
    later: Callable[[float], None] = lambda seconds: write_proc(  # noqa: E731
        tmp_path, busy=125, idle=175, waited_us=50_000
    )
    monkeypatch.setattr("wsgiload.doctor.settle.time.sleep", later)
    monkeypatch.setattr("wsgiload.doctor.settle.time.monotonic_ns", lambda: next(now_ns))

    assert watch_host(8080, tmp_path) == HostState(0.75, 2.5, 3)

    write_proc(tmp_path, busy=100, idle=100)
    assert watch_host(None, tmp_path).time_wait is None
    assert watch_host(8080, tmp_path / "nowhere") == HostState(None, None, None)


def test_the_default_procedure_depends_on_the_number_of_runs() -> None:
    assert usual_procedure(1) == Procedure(0, 1)
    assert usual_procedure(6) == Procedure(120 * NS_PER_S, 3)
    assert usual_procedure(6, 0, 0, "trim") == Procedure(0, 0, "trim")
    assert usual_procedure(1, NS_PER_S, 2) == Procedure(NS_PER_S, 2)
