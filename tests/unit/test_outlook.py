"""The interim ranking of the servers, and the interim state of a race."""

from __future__ import annotations

import pytest

from wsgiload.analysis.races import Track
from wsgiload.statistics.race import Drop, RaceState
from wsgiload.sweeps.outlook import race_words, ranking_words

from .filled import outcomes, rates
from .invented_cells import cell, invalid, runs_of

APP = cell("a").app
AT_1000 = Track(1000.0, None, APP)


def test_servers_are_ranked_by_the_median_of_their_runs() -> None:
    cells = [*runs_of("a", [9e6, 3e6, 4e6]), *runs_of("b", [2e6, 2.5e6]), cell("other")]
    assert ranking_words(AT_1000, ["a", "b", "c"], cells) == "p99 so far: b 2.25 ms, a 4.00 ms"


def test_infinite_quantiles_rank_last_and_invalid_trials_do_not_count() -> None:
    cells = [cell("a", p99_ns=None), cell("b"), invalid(cell("b", 2, 99e6)), invalid(cell("c"))]
    assert ranking_words(AT_1000, ["a", "b", "c"], cells) == "p99 so far: b 10.0 ms, a infinite"


def test_with_few_requests_the_median_is_shown() -> None:
    few = cell("a", outcomes=outcomes(100))
    assert ranking_words(AT_1000, ["a", "b"], [few]) == "p50 so far: a 10.0 ms"


def test_in_a_closed_loop_the_highest_goodput_leads() -> None:
    cells = [
        cell(name, rate=None, connections=5, rate_result=rates(per_s))
        for name, per_s in (("a", 900.0), ("b", 1200.0))
    ]
    track = Track(None, 5, APP)
    assert ranking_words(track, ["a", "b"], cells) == "goodput so far: b 1,200/s, a 900/s"


def test_without_trials_at_this_load_or_without_rivals_there_is_no_ranking() -> None:
    assert ranking_words(AT_1000, ["a", "b"], [cell("a", rate=500.0)]) is None
    assert ranking_words(AT_1000, ["a"], [cell("a")]) is None


@pytest.mark.parametrize(
    ("state", "rounds", "by_objective", "sentence"),
    [
        (RaceState("undecided", ("a", "b", "c"), ()), 1, False, "a leads b and c after 1 round"),
        (
            RaceState("undecided", ("a", "b"), (Drop("c", 2, "a", 1.6),)),
            3,
            False,
            "a leads b after 3 rounds; 1 dropped out",
        ),
        (
            RaceState("undecided", ("a",), (Drop("b", 1, "a", 2.0, in_qualifying=True),)),
            0,
            False,
            "a is the only one left after short trials; 1 dropped out",
        ),
        (
            RaceState("undecided", ("a", "b"), ()),
            2,
            True,
            "of the configurations that may meet the objective, a is the leanest after 2 rounds",
        ),
    ],
)
def test_the_state_of_a_race_is_one_sentence(
    state: RaceState, rounds: int, by_objective: bool, sentence: str
) -> None:
    assert race_words(state, rounds, by_objective=by_objective) == sentence
