"""Which settings qualify for a race of many settings, and how often the best one is found.

``WSGILOAD_RACES=1000`` simulates 1,000 experiments of each kind; decision 29 has the results."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

import pytest

from wsgiload.experiment.qualifying import FIELD, FIELD_WITH_OBJECTIVE, qualifying_of, trials_of
from wsgiload.loads.options import Level, LoadSettings
from wsgiload.statistics.halving import qualify
from wsgiload.statistics.race import RaceState, Rules, judge_race, race_effects
from wsgiload.statistics.sequential import Round, mean_at_any_analysis
from wsgiload.units import NS_PER_S

EXPERIMENTS = int(os.environ.get("WSGILOAD_RACES", "40"))
MAX_ERROR_RATE = 0.05 + 2 * math.sqrt(0.05 * 0.95 / EXPERIMENTS)
SETTINGS = tuple(f"s{server}-w{size}" for server in range(8) for size in range(6))
RULES = Rules(11)
FIXED_TRIALS = RULES.max_rounds * len(SETTINGS)
# Standard deviations of log p99 in a full trial of 10 s (0.2 for a paired difference) and in a
# short trial of 3 s.
DEVIATION = 0.2 / math.sqrt(2)
SHORT_DEVIATION = DEVIATION * math.sqrt(10 / 3)
LOAD = LoadSettings(duration_ns=10 * NS_PER_S, warmup=2.0, cooldown=1.0)


# --- qualifying


def test_the_faster_half_qualifies_and_each_drop_names_the_leader() -> None:
    values = {name: 0.02 * rank for rank, name in enumerate("abcdefgh")}
    qualified = qualify(tuple("hgfedcba"), [values], field=2)
    assert qualified.contenders == tuple("abcd")
    drop = next(drop for drop in qualified.drops if drop.server == "h")
    assert (drop.behind, drop.after_round, drop.in_qualifying) == ("a", 1, True)
    assert drop.factor == pytest.approx(math.exp(0.14))


def test_settings_that_failed_or_are_far_behind_drop_out_even_from_a_small_field() -> None:
    values = {"a": 0.0, "b": 0.1, "c": 0.2, "d": 1.0, "e": math.inf}
    qualified = qualify(tuple("abcde"), [values], field=5)
    assert qualified.contenders == ("a", "b", "c")
    assert {drop.server: drop.behind for drop in qualified.drops} == {"d": "a", "e": None}


def test_the_second_fastest_qualifies_even_if_far_behind() -> None:
    assert qualify(("a", "b", "c"), [{"a": 0, "b": 3, "c": 4}], field=2).contenders == ("a", "b")


def test_a_setting_without_a_valid_trial_does_not_drop_out() -> None:
    values = {name: 0.02 * rank for rank, name in enumerate("abcdef")}
    del values["f"]
    assert "f" in qualify(tuple("abcdef"), [values], field=3).contenders


def test_a_later_round_reverses_no_drop() -> None:
    first = {name: 0.1 * rank for rank, name in enumerate("abcdefgh")}
    before = qualify(tuple("abcdefgh"), [first], field=2)
    after = qualify(tuple("abcdefgh"), [first, {name: -first[name] for name in "abcd"}], field=2)
    assert after.drops[: len(before.drops)] == before.drops
    assert len(after.contenders) == 2


@pytest.mark.parametrize(
    ("settings", "rounds", "trials"), [(8, None, None), (9, 1, 9), (24, 2, 36), (48, 3, 84)]
)
def test_only_more_than_eight_settings_have_to_qualify(
    settings: int, rounds: int | None, trials: int | None
) -> None:
    stage = qualifying_of(settings, LOAD, [Level(rate_per_s=200.0)], has_objective=False)
    if stage is None:
        assert rounds is None
        return
    assert (stage.rounds, stage.field, trials_of(stage, settings)) == (rounds, FIELD, trials)
    assert stage.load.load_ns == 4_500_000_000


def test_with_an_objective_each_setting_has_one_short_trial_longer_at_low_rates() -> None:
    stage = qualifying_of(2, LOAD, [Level(rate_per_s=100.0)], has_objective=True)
    assert stage is not None
    assert (stage.rounds, stage.field) == (1, FIELD_WITH_OBJECTIVE)
    assert stage.load.duration_ns == 5 * NS_PER_S
    slow = qualifying_of(2, LOAD, [Level(rate_per_s=1.0)], has_objective=True)
    assert slow is not None
    assert slow.load.duration_ns == LOAD.duration_ns


# --- error rates in simulations


@dataclass(frozen=True)
class SearchResult:
    """The result of a simulated search among many settings."""

    state: RaceState
    rounds: Sequence[Round]
    short_trials: int
    trials: int

    @property
    def best(self) -> tuple[str, ...]:
        """The winner, or the contenders that are tied."""
        state = self.state
        return state.contenders[:1] if state.outcome == "winner" else state.contenders


def _round(
    draw: random.Random, names: Sequence[str], means: Mapping[str, float], deviation: float
) -> Round:
    shared = draw.gauss(0, 0.3)
    return {name: shared + means[name] + draw.gauss(0, deviation) for name in names}


def _search(seed: int, means: Mapping[str, float]) -> SearchResult:
    draw, short = random.Random(seed), list[Round]()
    stage = qualifying_of(len(means), LOAD, [Level(rate_per_s=500.0)], has_objective=False)
    assert stage is not None
    names, short_trials = tuple(means), 0
    for _ in range(stage.rounds):
        short.append(_round(draw, names, means, SHORT_DEVIATION))
        short_trials += len(names)
        names = qualify(tuple(means), short, stage.field).contenders

    rounds, trials = list[Round](), 0
    state = judge_race(names, rounds, RULES)
    while not state.is_decided and len(rounds) < RULES.max_rounds:
        rounds.append(_round(draw, state.contenders, means, DEVIATION))
        trials += len(state.contenders)
        state = judge_race(names, rounds, RULES)
    return SearchResult(state, rounds, short_trials, trials)


def _servers_and_sizes(seed: int) -> dict[str, float]:
    """The mean log p99 of each setting. Servers and sizes differ, one setting in five is
    overloaded, and the best is faster than the second by a factor of 1.3."""
    draw = random.Random(10_000 + seed)
    servers = [draw.gauss(0, 0.4) for _ in range(8)]
    means = {
        name: servers[index // 6] + draw.gauss(0, 0.4) + (2.0 if draw.random() < 0.2 else 0.0)
        for index, name in enumerate(SETTINGS)
    }
    best, second, *_ = sorted(means, key=lambda name: means[name])
    means[best] = means[second] - math.log(1.3)
    return means


def test_the_best_of_48_settings_is_found_in_few_trials() -> None:
    """Alone, or tied with at most two others."""
    is_found, best_counts, trial_shares = [], [], []
    for seed in range(EXPERIMENTS):
        means = _servers_and_sizes(seed)
        search = _search(seed, means)
        best = min(means, key=lambda name: means[name])
        is_found.append(best in search.best and len(search.best) <= 3)
        best_counts.append(len(search.best))
        trial_shares.append((search.short_trials + search.trials) / FIXED_TRIALS)

    assert fmean(is_found) >= 0.9
    assert median(best_counts) <= 3
    assert max(trial_shares) < 0.35
    assert fmean(trial_shares) < 0.25


def test_equal_settings_differ_in_at_most_5_percent_of_searches() -> None:
    """Settings that qualified by chance have no advantage: only the rounds of the race count."""

    def is_wrong(search: SearchResult) -> bool:
        effects = race_effects(tuple(search.rounds[0]), search.rounds, RULES)
        significant = [
            effect for effect in effects.values() if effect is not None and effect.p_adjusted < 0.05
        ]
        return bool(significant) or search.state.outcome == "winner"

    searches = [_search(seed, dict.fromkeys(SETTINGS, 0.0)) for seed in range(EXPERIMENTS)]
    assert fmean(is_wrong(search) for search in searches) <= MAX_ERROR_RATE


def test_a_setting_at_the_limit_meets_it_in_at_most_5_percent_of_races() -> None:
    """Any of four settings, with an interim analysis after every round."""
    max_rounds = 11
    analyses = Rules(max_rounds).analyses() * FIELD_WITH_OBJECTIVE

    def meets_limit(draw: random.Random) -> bool:
        values = [draw.gauss(0, DEVIATION) for _ in range(max_rounds)]
        intervals = [
            mean_at_any_analysis(values[:count], analyses) for count in range(1, max_rounds + 1)
        ]
        return any(
            interval is not None and interval.mean + interval.half_90 < 0 for interval in intervals
        )

    wrong = [
        any(meets_limit(random.Random(100 * seed + index)) for index in range(FIELD_WITH_OBJECTIVE))
        for seed in range(EXPERIMENTS)
    ]

    assert fmean(wrong) <= MAX_ERROR_RATE
