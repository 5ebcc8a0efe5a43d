"""Capacity searches within a budget: trial duration, end of the search, and accuracy."""

from __future__ import annotations

import random
from collections.abc import Iterator
from statistics import median

import pytest

from wsgiload.capacity_search.budget import (
    GOAL,
    MIN_TRIAL_S,
    Clock,
    require_enough,
    trial_s_within,
)
from wsgiload.capacity_search.search import Goal, SearchResult, search
from wsgiload.errors import UsageError

# The overhead of a trial: launch, warm-up and cool-down.
OVERHEAD_S = 4.0
BUDGET_S = 180.0


def test_trials_fill_the_budget_and_never_become_too_short() -> None:
    one_server_s, two_servers_s = (trial_s_within(600.0, servers, OVERHEAD_S) for servers in (1, 2))
    assert 2 * (two_servers_s + OVERHEAD_S) == pytest.approx(one_server_s + OVERHEAD_S)
    assert trial_s_within(10.0, 1, OVERHEAD_S) == MIN_TRIAL_S


def test_a_short_budget_is_rejected_with_a_sufficient_one() -> None:
    with pytest.raises(UsageError) as error:
        require_enough(60.0, 2, OVERHEAD_S)

    assert error.value.cause == "--budget is too short for a capacity search on 2 servers"
    assert error.value.fix is not None

    minutes = int(error.value.fix.removeprefix("use --budget ").removesuffix("m"))
    require_enough(60.0 * minutes, 2, OVERHEAD_S)
    assert trial_s_within(60.0 * minutes, 2, OVERHEAD_S) >= MIN_TRIAL_S


def test_the_search_ends_when_only_confirmations_fit_into_the_remaining_time() -> None:
    now_s = 100.0
    clock = Clock(BUDGET_S, 100.0, 30.0, lambda: now_s)
    assert not clock.must_confirm(3)

    now_s = 200.0
    assert clock.must_confirm(3)
    assert not clock.must_confirm(1)

    now_s = 246.0
    assert clock.must_confirm(1)


# --- a queue with four threads of 10 ms


def _response_times_s(rate_per_s: float, seconds: float, rng: random.Random) -> Iterator[float]:
    """Response times of an M/D/4 queue (FIFO), without the first second (warm-up)."""
    free_s, now_s, count = [0.0] * 4, 0.0, 0
    while (now_s := now_s + rng.expovariate(rate_per_s)) < 1.0 + seconds:
        end_s = max(now_s, free_s[count % 4]) + 0.010
        free_s[count % 4] = end_s
        count += 1
        if now_s > 1.0:
            yield end_s - now_s


def _p99_s(rate_per_s: float, seconds: float, rng: random.Random) -> float:
    times = sorted(_response_times_s(rate_per_s, seconds, rng))
    return times[int(0.99 * len(times))]


def _run_search(seed: int) -> tuple[SearchResult, int]:
    """The result of a search within the budget, and its number of trials."""
    rng, trials = random.Random(seed), 0
    trial_s = trial_s_within(BUDGET_S, 1, OVERHEAD_S)
    clock = Clock(
        BUDGET_S,
        0.0,
        GOAL.confirmations * (trial_s + OVERHEAD_S),
        lambda: (1 + trials) * (trial_s + OVERHEAD_S),
    )

    steps = search(400 * rng.uniform(0.9, 1.0), GOAL, lambda: clock.must_confirm(1))
    next_trial = next(steps)
    while True:
        trials += 1
        try:
            next_trial = steps.send(_p99_s(next_trial.rate_per_s, trial_s, rng) < 0.050)
        except StopIteration as ended:
            return ended.value, trials


def test_three_minutes_find_the_capacity_of_a_simulated_queue() -> None:
    """In a long simulation, the p99 is 50 ms at 349 per second."""
    assert _p99_s(340, 400, random.Random(1)) < 0.050 < _p99_s(358, 400, random.Random(1))

    searches = [_run_search(seed) for seed in range(20)]
    rates = [result.rate_per_s for result, _ in searches if result.rate_per_s is not None]
    assert len(rates) >= 15
    assert median(rates) == pytest.approx(349, rel=0.03)
    assert all(rate == pytest.approx(349, rel=0.12) for rate in rates)
    # All trials, including the closed loop, fit into the budget.
    trial_s = trial_s_within(BUDGET_S, 1, OVERHEAD_S)
    assert max(1 + trials for _, trials in searches) * (trial_s + OVERHEAD_S) <= BUDGET_S


def test_a_search_with_a_budget_starts_higher_with_fewer_trials_per_rate() -> None:
    assert Goal().first_share < GOAL.first_share and Goal().trials > GOAL.trials
