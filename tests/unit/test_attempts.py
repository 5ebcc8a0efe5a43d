"""Repeated trials: the least disturbed attempt counts, whatever its result."""

from __future__ import annotations

from msgspec.structs import replace

from wsgiload.analysis.aggregate import ServerLevel, counted_runs, figure_of
from wsgiload.analysis.attempts import counted_attempt, counted_attempts, is_disturbed, repeated
from wsgiload.documents.cell_result import CellFailure, CellResult

from .filled import reason, verdict
from .invented_cells import DURATION_S, cell, invalid


def attempt(number: int, disturbed_s: float | None = 0.0, p99_ns: float = 10e6) -> CellResult:
    trial = cell("a", 1, p99_ns, attempt=number, disturbed_s=disturbed_s)
    return trial if number == 1 else replace(trial, id=f"{trial.id}.{number}")


def test_one_second_in_a_hundred_may_be_disturbed() -> None:
    assert not is_disturbed(attempt(1, None))
    assert not is_disturbed(attempt(1, DURATION_S / 100))
    assert is_disturbed(attempt(1, 1.0))


def test_a_stall_disturbs_if_the_host_is_to_blame() -> None:
    for blame in ("host", "client"):
        stalled = verdict("warn", blame, reason("client-stalls"))
        assert is_disturbed(replace(attempt(1), verdict=stalled)) == (blame == "host")


def test_the_least_disturbed_attempt_counts_however_slow() -> None:
    fast, slow, last = attempt(1, 3.0, 1e6), attempt(2, 1.0, 99e6), attempt(3, 5.0, 1e6)
    assert counted_attempt([fast, slow, last]) is slow
    assert counted_attempts([fast, slow, last, cell("b")]) == [slow, cell("b")]
    [run] = counted_runs([fast, slow, last])[ServerLevel("a", 1000.0, None)].values()
    assert figure_of(run, "p99") == 99e6


def test_an_unknown_disturbance_is_worse_than_a_small_one() -> None:
    known, unknown, disturbed = attempt(1, DURATION_S / 200), attempt(2, None), attempt(3, 9.0)
    assert counted_attempt([known, unknown]) is known
    assert counted_attempt([unknown, disturbed]) is unknown


def test_a_discarded_attempt_counts_only_if_all_are_discarded() -> None:
    discarded, disturbed = invalid(attempt(1)), attempt(2, 9.0)
    assert counted_attempt([discarded, disturbed]) is disturbed
    assert counted_attempt([disturbed, invalid(attempt(3))]) is disturbed

    both = [discarded, invalid(attempt(2))]
    assert counted_attempt(both) is both[-1]
    assert counted_runs(both) == {ServerLevel("a", 1000.0, None): {}}


def test_a_failure_in_a_repeated_trial_counts() -> None:
    failure = CellFailure(step="load", message="fell over", log_tail="")
    failed = replace(attempt(2, None), verdict=verdict("invalid", "server"), failure=failure)
    assert counted_attempt([attempt(1, 2.0), failed]) is failed


def test_repeated_trials_are_counted() -> None:
    trials = [invalid(attempt(1)), attempt(2, 9.0), attempt(3), cell("b")]
    assert repeated(trials, runs=6) == 1, "invalid trials are always repeated"
    assert repeated(trials, runs=1) == 2
    assert repeated([invalid(attempt(1)), invalid(attempt(2))], runs=6) == 0
