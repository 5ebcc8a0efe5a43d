"""Races of simulated servers: dropouts, outcomes and error rates.

``WSGILOAD_RACES`` is the number of simulated races per test; decision 26 has figures for 1,000.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median

import pytest

from wsgiload.statistics.effect import paired_effect
from wsgiload.statistics.race import RaceState, Rules, judge_race, race_effects
from wsgiload.statistics.sequential import Round, Spread, sequential_effect, spread_of

SERVERS = tuple("abcdefgh")
MAX_ROUNDS = 11
RULES = Rules(MAX_ROUNDS)
FIXED_TRIALS = MAX_ROUNDS * len(SERVERS)
# Standard deviation of the logarithms of one server; that of a paired difference is 0.2.
SERVER_DEVIATION = 0.2 / math.sqrt(2)
EXPERIMENTS = int(os.environ.get("WSGILOAD_RACES", "60"))
# 5 % plus two standard errors.
ALLOWED = 0.05 + 2 * math.sqrt(0.05 * 0.95 / EXPERIMENTS)


# --- decisions


def _constant(values: Mapping[str, float], count: int, wobble: float = 0.02) -> list[Round]:
    """Rounds with a small spread that differs from server to server and round to round."""
    return [
        {
            name: value + wobble * math.sin(1 + 7 * number + 3 * place)
            for place, (name, value) in enumerate(values.items())
        }
        for number in range(count)
    ]


def test_one_round_decides_nothing() -> None:
    state = judge_race(("a", "b"), [{"a": 0.0, "b": 5.0}], RULES)
    assert (state.outcome, state.dropped, state.margin) == ("undecided", (), None)


def test_clearly_slower_servers_drop_out_and_the_last_two_run_a_final() -> None:
    values = {"a": 0.0, "b": 0.5, "c": 1.0, "d": 1.5}
    early = judge_race(("d", "c", "b", "a"), _constant(values, 2), RULES)
    assert (early.outcome, early.contenders) == ("undecided", ("a", "b"))
    assert {drop.server for drop in early.dropped} == {"c", "d"}
    drop = next(drop for drop in early.dropped if drop.server == "c")
    assert (drop.behind, drop.after_round) == ("a", 2)
    assert drop.factor == pytest.approx(math.e, rel=0.05)

    assert judge_race(("d", "c", "b", "a"), _constant(values, 3), RULES).outcome == "undecided"
    late = judge_race(("d", "c", "b", "a"), _constant(values, 6), RULES)
    assert (late.outcome, late.leader) == ("winner", "a")


def test_rounds_before_the_final_do_not_decide_it() -> None:
    values = {"a": 0.0, "b": 0.5, "c": 3.0}
    equal = {"a": 0.0, "b": 0.0}
    rounds = [*_constant(values, 2), *_constant(equal, 6)]
    state = judge_race(("a", "b", "c"), rounds, RULES)
    assert state.contenders == ("a", "b")
    assert state.outcome != "winner"


def test_equal_servers_tie_within_a_margin_that_shrinks_with_the_rounds() -> None:
    few = judge_race(("a", "b"), _constant({"a": 0.0, "b": 0.01}, 4), RULES)
    many = judge_race(("a", "b"), _constant({"a": 0.0, "b": 0.01}, 10), RULES)
    assert few.outcome == many.outcome == "ties"
    assert few.margin is not None
    assert many.margin is not None
    assert 0 < many.margin < few.margin < 0.3


def test_an_undecided_race_estimates_the_remaining_rounds() -> None:
    rounds = [{"a": 0.0, "b": 0.3}, {"a": 0.2, "b": 0.3}, {"a": 0.0, "b": 0.25}]
    state = judge_race(("a", "b"), rounds, RULES)
    assert state.outcome == "undecided"
    assert state.rounds_left is not None
    assert 1 <= state.rounds_left <= MAX_ROUNDS - 3


def test_a_server_that_fails_twice_drops_out_and_the_others_continue() -> None:
    rounds = _constant({"a": 0.0, "b": 0.0}, 2)
    state = judge_race(("a", "b", "c"), [{**one, "c": math.inf} for one in rounds], RULES)
    assert [drop.server for drop in state.dropped] == ["c"]
    assert state.dropped[0].behind is None
    assert set(state.contenders) == {"a", "b"}


def test_a_race_is_over_if_every_server_fails() -> None:
    state = judge_race(("a", "b"), [dict.fromkeys("ab", math.inf)] * 2, RULES)
    assert (state.outcome, state.contenders, state.is_decided) == ("failed", (), True)


def test_the_only_server_that_does_not_fail_wins() -> None:
    rounds = [{"a": 0.1, "b": math.inf}, {"a": 0.2, "b": math.inf}]
    state = judge_race(("a", "b"), rounds, RULES)
    assert (state.outcome, state.leader) == ("winner", "a")


def test_a_single_server_has_no_race() -> None:
    state = judge_race(("a",), [{"a": 0.1}] * 5, RULES)
    assert (state.outcome, state.contenders) == ("undecided", ("a",))


def test_a_missing_trial_affects_only_its_round() -> None:
    rounds = [dict(one) for one in _constant({"a": 0.0, "b": 0.5, "c": 0.5}, 4)]
    del rounds[1]["b"]
    assert judge_race(("a", "b", "c"), rounds, RULES).leader == "a"


def test_a_dropout_is_final() -> None:
    rounds: list[Round] = _constant({"a": 0.0, "b": 0.1, "c": 1.0}, 3)
    before = judge_race(("a", "b", "c"), rounds, RULES)
    after = judge_race(("a", "b", "c"), [*rounds, {"a": 2.0, "b": 2.0}], RULES)
    assert [drop.server for drop in before.dropped] == ["c"]
    assert after.dropped[: len(before.dropped)] == before.dropped


def test_the_pooled_variance_is_that_of_a_paired_difference() -> None:
    draw = random.Random(5)
    rounds = [_round(draw, dict.fromkeys(SERVERS, 0.0)) for _ in range(400)]
    spread = spread_of(SERVERS, rounds)
    assert spread is not None
    assert math.sqrt(spread.variance) == pytest.approx(0.2, rel=0.05)
    assert spread.degrees == 399 * 7


def test_a_single_analysis_of_one_pair_is_the_paired_t_test() -> None:
    values = [0.1, 0.3, -0.1, 0.2, 0.25]
    spread = Spread(1.0, len(values) - 1)  # no degrees of freedom from other pairs
    once, plain = sequential_effect(values, spread, 1), paired_effect(values)
    assert once is not None
    assert once.p == pytest.approx(plain.p)
    assert once.interval.half_95 == pytest.approx(plain.interval.half_95)

    eight = sequential_effect(values, spread, 8)
    assert eight is not None
    assert eight.p == pytest.approx(min(1.0, 8 * plain.p))
    assert eight.interval.half_95 > once.interval.half_95


# --- error rates


@dataclass(frozen=True)
class FinishedRace:
    """A race that ended or used up its trials."""

    state: RaceState
    rounds: Sequence[Round]
    trials: int


def _round(
    draw: random.Random,
    means: Mapping[str, float],
    deviations: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """One round; its shared noise cancels in paired differences."""
    shared = draw.gauss(0, 0.3)
    deviations = deviations or {}
    return {
        name: shared + mean + draw.gauss(0, deviations.get(name, SERVER_DEVIATION))
        for name, mean in means.items()
    }


def _race(
    seed: int,
    means: Mapping[str, float],
    max_trials: int,
    deviations: Mapping[str, float] | None = None,
    lost: float = 0.0,
) -> FinishedRace:
    draw, rounds, trials = random.Random(seed), list[Round](), 0
    state = judge_race(tuple(means), rounds, RULES)

    while not state.is_decided and len(rounds) < MAX_ROUNDS:
        if trials + len(state.contenders) > max_trials:
            break
        values = _round(draw, means, deviations)
        rounds.append({name: values[name] for name in state.contenders if draw.random() >= lost})
        trials += len(state.contenders)
        state = judge_race(tuple(means), rounds, RULES)

    return FinishedRace(state, rounds, trials)


def _races(means: Mapping[str, float], max_trials: int, **others: object) -> list[FinishedRace]:
    return [
        _race(seed, means, max_trials, **others)  # type: ignore[arg-type]
        for seed in range(EXPERIMENTS)
    ]


def _is_wrong(race: FinishedRace) -> bool:
    """Whether a race of equal servers has a significant difference or a winner."""
    effects = race_effects(tuple(race.rounds[0]), race.rounds, RULES)
    significant = [one for one in effects.values() if one is not None and one.p_adjusted < 0.05]
    return bool(significant) or race.state.outcome == "winner"


def _share(races: Sequence[FinishedRace], predicate: Callable[[FinishedRace], bool]) -> float:
    return fmean(predicate(race) for race in races)


def _best_set(race: FinishedRace) -> tuple[str, ...]:
    return race.state.contenders[:1] if race.state.outcome == "winner" else race.state.contenders


@pytest.mark.parametrize("count", [2, 8])
def test_equal_servers_differ_in_at_most_5_percent_of_races(count: int) -> None:
    """Over all pairs and all interim analyses."""
    races = _races(dict.fromkeys(SERVERS[:count], 0.0), FIXED_TRIALS)
    assert _share(races, _is_wrong) <= ALLOWED


def test_equal_servers_of_unequal_variance_differ_in_at_most_5_percent_of_races() -> None:
    deviations = {"a": SERVER_DEVIATION / 2, "b": 3 * SERVER_DEVIATION}
    races = _races(dict.fromkeys(SERVERS, 0.0), FIXED_TRIALS, deviations=deviations)
    assert _share(races, _is_wrong) <= ALLOWED


@pytest.mark.parametrize("lost", [0.0, 0.1])
def test_the_best_of_eight_is_found_with_40_percent_of_the_trials(lost: float) -> None:
    """Even if one trial in ten is discarded and not repeated."""
    means = {name: 0.0 if name == "c" else math.log(1.3) for name in SERVERS}
    max_trials = int(0.4 * FIXED_TRIALS)
    races = _races(means, max_trials, lost=lost)
    assert max(race.trials for race in races) <= max_trials
    assert _share(races, lambda race: "c" in _best_set(race)) >= 0.9
    assert median(len(_best_set(race)) for race in races) <= 3


def test_the_faster_of_two_servers_wins_at_least_70_percent_of_races() -> None:
    races = _races({"a": 0.0, "b": math.log(1.3)}, 2 * MAX_ROUNDS)
    won = _share(races, lambda race: race.state.outcome == "winner" and race.state.leader == "a")
    assert won >= 0.7
    assert fmean(race.trials for race in races) < 2 * MAX_ROUNDS


def test_the_margin_of_ties_covers_the_true_difference() -> None:
    means = {name: place * math.log(1.05) for place, name in enumerate("abcd")}
    races = [race for race in _races(means, FIXED_TRIALS) if race.state.outcome == "ties"]
    assert races

    def is_beyond(race: FinishedRace) -> bool:
        assert race.state.margin is not None
        contender_means = [means[name] for name in race.state.contenders]
        return max(abs(one - contender_means[0]) for one in contender_means) > math.log1p(
            race.state.margin
        )

    assert _share(races, is_beyond) <= ALLOWED


def test_the_number_of_contenders_only_decreases() -> None:
    means = {name: place * math.log(1.3) for place, name in enumerate("abcdef")}
    race = _race(3, means, FIXED_TRIALS)
    assert all(set(later) <= set(one) for one, later in pairwise(race.rounds))
    assert len(race.rounds[-1]) == 2
