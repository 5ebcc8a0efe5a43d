"""The interim ranking of the servers, and the interim state of a race."""

from __future__ import annotations

from wsgiload.analysis.races import Track
from wsgiload.procedures.race import Drop, ObjectiveState
from wsgiload.statistics.leading import Standing, State
from wsgiload.sweeps.outlook import ranking_words, standing_words

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


def test_the_state_of_a_race_with_an_objective_is_one_sentence() -> None:
    state = ObjectiveState("undecided", ("a", "b"), (Drop("c", 2),))
    sentence = "a is the leanest of 2 configurations that may meet the objective; 1 dropped out"
    assert standing_words(state) == sentence


def test_the_state_of_a_race_names_what_is_still_open() -> None:
    standings = (
        Standing("b", "tied", 4, 1.01, (0.95, 1.07)),
        Standing("c", "open", 4, 1.1, (0.98, 1.24)),
        Standing("d", "open", 2, 1.2, (0.01, 99.0)),
        Standing("e", "behind", 2, 9.0, (5.0, 16.0)),
    )
    state = State(("a", "b", "c", "d"), {"e": 2}, leader="a", standings=standings)
    assert standing_words(state) == (
        "a leads; tied: b; open: c 1.10× [0.98, 1.24], d 1.20×; 1 dropped out"
    )
    assert standing_words(State(("a", "b"))) == "no server has a result yet"
