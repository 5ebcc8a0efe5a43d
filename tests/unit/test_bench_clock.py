"""The lateness of a loop that only reads the clock, computed from its pauses."""

from __future__ import annotations

import itertools
import random
import sys

import pytest

from bench.clock import clock_late_us, late_ns, pauses_ns
from bench.placement import Placement, choose_cores


def test_a_time_within_a_pause_is_late_by_the_rest_of_the_pause() -> None:
    # One pause takes a tenth of the time, so 5 % of all times are late by more than half of it.
    assert late_ns([100], 1_000, 0.95) == pytest.approx(50)
    assert late_ns([100], 1_000, 0.99) == pytest.approx(90)
    assert late_ns([100], 1_000, 0.9) == pytest.approx(0)
    assert late_ns([100], 1_000, 0.5) == 0
    assert late_ns([], 1_000, 0.999) == 0


def test_lateness_matches_a_simulation() -> None:
    rng = random.Random(7)
    pauses = [int(rng.paretovariate(1.2) * 1_000) for _ in range(300)]
    gaps = [rng.randrange(200_000) for _ in pauses]
    elapsed_ns = sum(pauses) + sum(gaps)

    ends_ns = list(
        itertools.accumulate(pause_ns + gap for pause_ns, gap in zip(pauses, gaps, strict=True))
    )

    lateness_ns = []
    for end_ns, pause_ns in zip(ends_ns, pauses, strict=True):
        # Times are 100 ns apart; those outside pauses are not late.
        lateness_ns += [end_ns - time_ns for time_ns in range(end_ns - pause_ns, end_ns, 100)]
    count = elapsed_ns // 100
    lateness_ns = sorted([0] * (count - len(lateness_ns)) + lateness_ns)

    for share in (0.9, 0.99, 0.999):
        simulated = lateness_ns[int(share * count)]
        assert late_ns(pauses, elapsed_ns, share) == pytest.approx(simulated, rel=0.05, abs=300)


def test_the_loop_runs_on_its_core() -> None:
    late_us = clock_late_us(Placement(choose_cores()[0], real_time=False))
    assert late_us is not None
    assert list(late_us) == ["0.5", "0.99", "0.999"]
    assert 0 <= late_us["0.5"] <= late_us["0.99"] <= late_us["0.999"]


def test_a_delayed_loop_measures_the_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([0, 100, 200, 50_200, 50_300, 1_000_000])
    monkeypatch.setattr("bench.clock.time.monotonic_ns", lambda: next(readings))
    assert pauses_ns(1e-3) == ([50_000, 949_700], 1_000_000)


def test_a_loop_that_cannot_run_has_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert clock_late_us(Placement(choose_cores()[0], real_time=False)) is None
