"""The procedure of a capacity search, on simulated queues with fixed seeds. ``make simulate`` runs
many more."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from tests.simulated_capacity import ALLOWED, BUDGET_S, QUEUES, WIDTH, rates_of
from wsgiload.procedures.capacity import Outcome, Plan, SearchResult, capacity
from wsgiload.statistics.crossing import Counted, crossing_of

PLAN = Plan(500.0, 500 / 32, 500 * 16, WIDTH, 240.0, 16.0)
REQUESTS = 1_000_000
SLO_S = 0.020


@pytest.mark.parametrize("name", ["M/M/1 2 ms, p99<50ms", "M/D/4, launches differ by 2 %"])
def test_four_minutes_find_the_capacity_of_a_queue(name: str) -> None:
    rates = rates_of(QUEUES[name], 8)
    assert rates.answered == 100
    assert rates.covered >= 87
    assert rates.within_5 >= 87
    assert rates.median_s <= BUDGET_S


def exact(rate_per_s: float, service_per_s: float = 500.0) -> Counted:
    """A trial of M/M/1 without noise."""
    spare = max(1.0, service_per_s - rate_per_s)
    beyond = round(REQUESTS * math.exp(-spare * SLO_S))
    return Counted(rate_per_s, REQUESTS, beyond, ALLOWED, math.log(100) / spare / SLO_S)


def carry_out(
    plan: Plan, outcome_at: Callable[[float], Counted | None], trial_s: float = 16.0
) -> tuple[SearchResult, list[float]]:
    search, rates = capacity(plan), list[float]()
    try:
        following = next(search)
        while True:
            rates.append(following.rate_per_s)
            following = search.send(Outcome(outcome_at(following.rate_per_s), trial_s))
    except StopIteration as end:
        return end.value, rates


@pytest.mark.parametrize("service_per_s", [300.0, 500.0, 3_000.0])
def test_a_queue_without_noise_is_found(service_per_s: float) -> None:
    """Even if the closed loop was far off."""
    result, rates = carry_out(PLAN, lambda rate: exact(rate, service_per_s))
    truth = service_per_s - math.log(100) / SLO_S
    assert result.crossing is not None
    assert result.crossing.rate_per_s == pytest.approx(truth, rel=0.01)
    assert len(rates) <= 15
    low, high = result.bracket
    assert low is not None and high is not None and low <= result.crossing.rate_per_s < high


def test_a_search_ends_before_the_trial_that_would_exceed_the_budget() -> None:
    result, rates = carry_out(PLAN, exact, trial_s=50.0)
    assert len(rates) == 4
    assert result.crossing is not None


def test_a_server_that_meets_or_misses_everywhere_ends_the_search_at_the_end() -> None:
    below, rates = carry_out(PLAN, lambda rate: Counted(rate, 1_000, 0, ALLOWED, 0.1))
    assert (below.crossing, below.bracket) == (None, (8_000.0, None))
    assert rates[-2:] == [8_000.0, 8_000.0] and len(rates) <= 12

    above, rates = carry_out(PLAN, lambda rate: Counted(rate, 1_000, 900, ALLOWED, 10.0))
    assert (above.crossing, above.bracket) == (None, (None, rates[-1]))
    assert rates[-2:] == [15.62, 15.62]


def test_an_inconclusive_trial_ends_the_search() -> None:
    result, _ = carry_out(PLAN, lambda rate: exact(rate) if rate > 300 else None)
    assert result.is_abandoned


def test_a_trial_that_was_disturbed_does_not_move_the_capacity() -> None:
    rates = (240.0, 250.0, 260.0, 265.0, 275.0, 280.0, 290.0, 300.0)
    trials = [exact(rate) for rate in rates]
    clean = crossing_of(trials, 500.0)
    spoiled = Counted(255.0, REQUESTS, REQUESTS // 5, ALLOWED, 3.0)
    disturbed = crossing_of([*trials, spoiled], 500.0)
    assert clean is not None and disturbed is not None
    assert disturbed.rate_per_s == pytest.approx(clean.rate_per_s, rel=0.001)


def test_the_interval_shrinks_with_agreeing_trials_and_grows_with_scattered_ones() -> None:
    few = [exact(rate) for rate in (250.0, 265.0, 275.0, 290.0)]
    scattered = [
        Counted(one.rate_per_s * factor, one.requests, one.beyond, ALLOWED, one.excess)
        for one, factor in zip(few * 2, (1.0, 1.05, 0.95, 1.0) * 2, strict=True)
    ]
    widths = [found.width for of in (few, few * 2, scattered) if (found := crossing_of(of, 500.0))]
    assert widths[1] < widths[0] and widths[1] < widths[2]


def test_without_a_miss_there_is_no_crossing() -> None:
    assert crossing_of([exact(100.0), exact(200.0)], 500.0) is None
