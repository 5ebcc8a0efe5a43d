"""Who qualifies for a race of many settings, and how often the best of them is found.

``WSGILOAD_RACES=1000`` simulates so many experiments of each kind; decision 29 has their figures.
"""

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
ALLOWED = 0.05 + 2 * math.sqrt(0.05 * 0.95 / EXPERIMENTS)
SETTINGS = tuple(f"s{server}-w{size}" for server in range(8) for size in range(6))
RULES = Rules(11)
FIXED_TRIALS = RULES.max_rounds * len(SETTINGS)
# Of a full trial, so that a paired difference has 0.2, and of one of 3 s instead of 10 s.
DEVIATION = 0.2 / math.sqrt(2)
SHORT_DEVIATION = DEVIATION * math.sqrt(10 / 3)
LOAD = LoadSettings(duration_ns=10 * NS_PER_S, warmup_ns=2 * NS_PER_S, cooldown_ns=NS_PER_S)


# --- what it decides


def test_the_better_half_stays_and_the_others_say_who_was_ahead() -> None:
    values = {name: 0.02 * place for place, name in enumerate("abcdefgh")}
    found = qualify(tuple("hgfedcba"), [values], field=2)
    assert found.contenders == tuple("abcd")
    drop = next(drop for drop in found.drops if drop.server == "h")
    assert (drop.behind, drop.after_round, drop.in_qualifying) == ("a", 1, True)
    assert drop.factor == pytest.approx(math.exp(0.14))


def test_what_is_far_behind_or_failed_goes_although_there_is_room() -> None:
    values = {"a": 0.0, "b": 0.1, "c": 0.2, "d": 1.0, "e": math.inf}
    found = qualify(tuple("abcde"), [values], field=5)
    assert found.contenders == ("a", "b", "c")
    assert {drop.server: drop.behind for drop in found.drops} == {"d": "a", "e": None}


def test_the_fastest_keeps_a_rival_however_far_behind() -> None:
    assert qualify(("a", "b", "c"), [{"a": 0, "b": 3, "c": 4}], field=2).contenders == ("a", "b")


def test_a_spoiled_trial_drops_nobody() -> None:
    values = {name: 0.02 * place for place, name in enumerate("abcdef")}
    del values["f"]
    assert "f" in qualify(tuple("abcdef"), [values], field=3).contenders


def test_a_later_round_takes_no_drop_back() -> None:
    first = {name: 0.1 * place for place, name in enumerate("abcdefgh")}
    before = qualify(tuple("abcdefgh"), [first], field=2)
    after = qualify(tuple("abcdefgh"), [first, {name: -first[name] for name in "abcd"}], field=2)
    assert after.drops[: len(before.drops)] == before.drops
    assert len(after.contenders) == 2


@pytest.mark.parametrize(
    ("settings", "rounds", "trials"), [(8, None, None), (9, 1, 9), (24, 2, 36), (48, 3, 84)]
)
def test_many_settings_have_to_qualify(
    settings: int, rounds: int | None, trials: int | None
) -> None:
    found = qualifying_of(settings, LOAD, [Level(rate_per_s=200.0)], has_objective=False)
    if found is None:
        assert rounds is None
        return
    assert (found.rounds, found.field, trials_of(found, settings)) == (rounds, FIELD, trials)
    assert found.load.load_ns == 4_500_000_000


def test_an_objective_takes_one_short_trial_of_each_that_is_longer_at_low_rates() -> None:
    found = qualifying_of(2, LOAD, [Level(rate_per_s=100.0)], has_objective=True)
    assert found is not None
    assert (found.rounds, found.field) == (1, FIELD_WITH_OBJECTIVE)
    assert found.load.duration_ns == 5 * NS_PER_S
    slow = qualifying_of(2, LOAD, [Level(rate_per_s=1.0)], has_objective=True)
    assert slow is not None
    assert slow.load.duration_ns == LOAD.duration_ns


# --- how often it is wrong


@dataclass(frozen=True)
class Searched:
    """A search among many settings that was run to its end."""

    state: RaceState
    rounds: Sequence[Round]
    short_trials: int
    trials: int

    @property
    def found(self) -> tuple[str, ...]:
        state = self.state
        return state.contenders[:1] if state.outcome == "winner" else state.contenders


def _round(
    draw: random.Random, names: Sequence[str], means: Mapping[str, float], deviation: float
) -> Round:
    shared = draw.gauss(0, 0.3)
    return {name: shared + means[name] + draw.gauss(0, deviation) for name in names}


def _search(seed: int, means: Mapping[str, float]) -> Searched:
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
    return Searched(state, rounds, short_trials, trials)


def _servers_and_sizes(seed: int) -> dict[str, float]:
    """Servers and sizes differ as they do, one in five cannot keep up, and the best is 1.3 times
    ahead of the next."""
    draw = random.Random(10_000 + seed)
    servers = [draw.gauss(0, 0.4) for _ in range(8)]
    means = {
        name: servers[place // 6] + draw.gauss(0, 0.4) + (2.0 if draw.random() < 0.2 else 0.0)
        for place, name in enumerate(SETTINGS)
    }
    best, second, *_ = sorted(means, key=lambda name: means[name])
    means[best] = means[second] - math.log(1.3)
    return means


def test_the_best_of_48_settings_or_a_few_ties_with_it_are_found_in_few_trials() -> None:
    good, sizes, shares = [], [], []
    for seed in range(EXPERIMENTS):
        means = _servers_and_sizes(seed)
        search = _search(seed, means)
        best = min(means, key=lambda name: means[name])
        good.append(best in search.found and len(search.found) <= 3)
        sizes.append(len(search.found))
        shares.append((search.short_trials + search.trials) / FIXED_TRIALS)
    assert fmean(good) >= 0.9
    assert median(sizes) <= 3
    assert max(shares) < 0.35
    assert fmean(shares) < 0.25


def test_equal_settings_are_told_apart_in_at_most_one_search_of_twenty() -> None:
    """Who qualified by luck is not flattered by it: the race counts its own rounds."""

    def is_wrong(search: Searched) -> bool:
        effects = race_effects(tuple(search.rounds[0]), search.rounds, RULES)
        found = [one for one in effects.values() if one is not None and one.p_adjusted < 0.05]
        return bool(found) or search.state.outcome == "winner"

    searches = [_search(seed, dict.fromkeys(SETTINGS, 0.0)) for seed in range(EXPERIMENTS)]
    assert fmean(is_wrong(search) for search in searches) <= ALLOWED


def test_a_setting_at_the_limit_is_said_to_meet_it_in_at_most_one_race_of_twenty() -> None:
    """Any of four, at any of eight looks, although every round is looked at."""
    max_rounds = 11
    looks = Rules(max_rounds).analyses() * FIELD_WITH_OBJECTIVE

    def claims(draw: random.Random) -> bool:
        values = [draw.gauss(0, DEVIATION) for _ in range(max_rounds)]
        intervals = [
            mean_at_any_analysis(values[:count], looks) for count in range(1, max_rounds + 1)
        ]
        return any(one is not None and one.mean + one.half_90 < 0 for one in intervals)

    wrong = [
        any(claims(random.Random(100 * seed + place)) for place in range(FIELD_WITH_OBJECTIVE))
        for seed in range(EXPERIMENTS)
    ]
    assert fmean(wrong) <= ALLOWED
