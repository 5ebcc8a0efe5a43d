"""A capacity search within a budget: how long its trials are, when it stops looking, and how near
it comes to a queue that is known."""

from __future__ import annotations

import random
from collections.abc import Iterator
from statistics import median

import pytest

from wsgiload.capacity_search.budget import (
    GOAL,
    SHORTEST_TRIAL_S,
    Clock,
    require_enough,
    trial_s_within,
)
from wsgiload.capacity_search.search import Goal, SearchResult, search
from wsgiload.errors import UsageError

# Launch, warm-up and cool-down.
AROUND_S = 4.0
BUDGET_S = 180.0


def test_trials_fill_the_budget_and_never_become_too_short() -> None:
    one, two = (trial_s_within(600.0, servers, AROUND_S) for servers in (1, 2))
    assert 2 * (two + AROUND_S) == pytest.approx(one + AROUND_S)
    assert trial_s_within(10.0, 1, AROUND_S) == SHORTEST_TRIAL_S


def test_a_budget_that_is_too_short_names_one_that_is_enough() -> None:
    with pytest.raises(UsageError) as refused:
        require_enough(60.0, 2, AROUND_S)
    assert str(refused.value).startswith("--budget is too short to search 2 servers")
    assert refused.value.fix is not None
    minutes = int(refused.value.fix.removeprefix("use --budget ").removesuffix("m"))
    require_enough(60.0 * minutes, 2, AROUND_S)
    assert trial_s_within(60.0 * minutes, 2, AROUND_S) >= SHORTEST_TRIAL_S


def test_looking_ends_when_only_the_confirmations_have_time_left() -> None:
    now_s = 100.0
    clock = Clock(BUDGET_S, 100.0, 30.0, lambda: now_s)
    assert not clock.must_confirm(3)
    now_s = 200.0
    assert clock.must_confirm(3)
    assert not clock.must_confirm(1)
    now_s = 246.0
    assert clock.must_confirm(1)


# --- a queue with four threads of 10 ms


def _response_times_s(rate_per_s: float, seconds: float, draw: random.Random) -> Iterator[float]:
    """M/D/4, first come first served; the first second is the warm-up."""
    free_s, now_s, count = [0.0] * 4, 0.0, 0
    while (now_s := now_s + draw.expovariate(rate_per_s)) < 1.0 + seconds:
        end_s = max(now_s, free_s[count % 4]) + 0.010
        free_s[count % 4] = end_s
        count += 1
        if now_s > 1.0:
            yield end_s - now_s


def _p99_s(rate_per_s: float, seconds: float, draw: random.Random) -> float:
    times = sorted(_response_times_s(rate_per_s, seconds, draw))
    return times[int(0.99 * len(times))]


def _searched(seed: int) -> tuple[SearchResult, int]:
    """What trials of that length find in the time that there is."""
    draw, made = random.Random(seed), 0
    trial_s = trial_s_within(BUDGET_S, 1, AROUND_S)
    clock = Clock(
        BUDGET_S,
        0.0,
        GOAL.confirmations * (trial_s + AROUND_S),
        lambda: (1 + made) * (trial_s + AROUND_S),
    )
    searching = search(400 * draw.uniform(0.9, 1.0), GOAL, lambda: clock.must_confirm(1))
    wanted = next(searching)
    while True:
        made += 1
        try:
            wanted = searching.send(_p99_s(wanted.rate_per_s, trial_s, draw) < 0.050)
        except StopIteration as ended:
            return ended.value, made


def test_three_minutes_come_within_a_few_percent_of_a_known_queue() -> None:
    """At 349 per second a long simulation has a p99 of 50 ms."""
    assert _p99_s(340, 400, random.Random(1)) < 0.050 < _p99_s(358, 400, random.Random(1))

    searches = [_searched(seed) for seed in range(20)]
    rates = [found.rate_per_s for found, _ in searches if found.rate_per_s is not None]
    assert len(rates) >= 15
    assert median(rates) == pytest.approx(349, rel=0.03)
    assert all(rate == pytest.approx(349, rel=0.12) for rate in rates)
    # One more confirmation may have begun while there was time for it.
    trial_s = trial_s_within(BUDGET_S, 1, AROUND_S)
    assert max(1 + made for _, made in searches) * (trial_s + AROUND_S) <= BUDGET_S


def test_without_a_budget_nothing_of_this_applies() -> None:
    assert Goal().first_share < GOAL.first_share and Goal().trials > GOAL.trials
