"""How late a loop is that only reads the clock, from the pauses in which it did not get to."""

from __future__ import annotations

import itertools
import random
import sys

import pytest

from bench.clock import clock_late_us, late_ns, pauses_ns
from bench.placement import Placement, choose_cores


def test_an_instant_in_a_pause_is_late_by_what_is_left_of_it() -> None:
    # A tenth of the time is one pause: of all instants 5 % lie in its first half, and are late by
    # more than the other.
    assert late_ns([100], 1_000, 0.95) == pytest.approx(50)
    assert late_ns([100], 1_000, 0.99) == pytest.approx(90)
    assert late_ns([100], 1_000, 0.9) == pytest.approx(0)
    assert late_ns([100], 1_000, 0.5) == 0
    assert late_ns([], 1_000, 0.999) == 0


def test_the_same_is_found_by_trying_instants() -> None:
    draw = random.Random(7)
    pauses = [int(draw.paretovariate(1.2) * 1_000) for _ in range(300)]
    gaps = [draw.randrange(200_000) for _ in pauses]
    elapsed = sum(pauses) + sum(gaps)
    ends = list(itertools.accumulate(pause + gap for pause, gap in zip(pauses, gaps, strict=True)))
    lateness = []
    for end, pause in zip(ends, pauses, strict=True):
        # Evenly spread instants, 100 ns apart, of which those outside of pauses are not late.
        lateness += [end - instant for instant in range(end - pause, end, 100)]
    count = elapsed // 100
    lateness = sorted([0] * (count - len(lateness)) + lateness)
    for share in (0.9, 0.99, 0.999):
        tried = lateness[int(share * count)]
        assert late_ns(pauses, elapsed, share) == pytest.approx(tried, rel=0.05, abs=300)


def test_the_loop_runs_on_its_core_and_reports() -> None:
    found = clock_late_us(Placement(choose_cores()[0], real_time=False))
    assert found is not None
    assert list(found) == ["0.5", "0.99", "0.999"]
    assert 0 <= found["0.5"] <= found["0.99"] <= found["0.999"]


def test_a_loop_that_is_held_up_sees_the_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([0, 100, 200, 50_200, 50_300, 1_000_000])
    monkeypatch.setattr("bench.clock.time.monotonic_ns", lambda: next(readings))
    assert pauses_ns(1e-3) == ([50_000, 949_700], 1_000_000)


def test_a_loop_that_cannot_run_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert clock_late_us(Placement(choose_cores()[0], real_time=False)) is None
