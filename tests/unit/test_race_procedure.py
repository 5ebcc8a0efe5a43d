"""Which launch a race chooses next, in virtual time, and how often simulated races are right."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from wsgiload.procedures.race import FULL_BLOCKS, Launch, Outcome, Plan, race
from wsgiload.statistics.leading import Rules, State

from ..simulated_races import World, false_differences, lead, rates_of

SERVERS = ("a", "b", "c")
RACES = 60


def _carry_out(
    figure_ms: Callable[[str, int], float], budget_s: float = 300.0, levels: int = 2
) -> tuple[list[Launch], State]:
    plan = Plan([SERVERS] * 40, levels, budget_s, [3.0], Rules(planned_blocks=10))
    procedure, launches = race(plan), list[Launch]()
    try:
        launch = next(procedure)
        while True:
            launches.append(launch)
            wobble = 0.03 * math.sin(launch.block + ord(launch.server))
            figures = {
                level: math.log(figure_ms(launch.server, level)) + wobble for level in launch.levels
            }
            launch = procedure.send(Outcome(figures, 3.0))
    except StopIteration as end:
        return launches, end.value


def test_the_first_blocks_measure_every_level_and_the_others_the_decisive_one() -> None:
    launches, _ = _carry_out(lambda server, _: {"a": 10.0, "b": 10.5, "c": 90.0}[server])
    assert {launch.levels for launch in launches if launch.block <= FULL_BLOCKS} == {(0, 1)}
    assert {launch.levels for launch in launches if launch.block > FULL_BLOCKS} == {(0,)}


def test_a_server_that_dropped_out_is_not_launched_again_and_the_race_ends_when_decided() -> None:
    launches, state = _carry_out(lambda server, _: {"a": 10.0, "b": 13.0, "c": 90.0}[server])
    assert [launch.block for launch in launches if launch.server == "c"] == [1]
    assert (state.contenders, state.is_decided) == (("a",), True)
    assert len(launches) < 40


def test_no_launch_begins_that_may_exceed_the_budget() -> None:
    launches, state = _carry_out(lambda *_: 10.0, budget_s=16.0)
    assert len(launches) == 5
    assert not state.is_decided


def test_a_level_that_every_server_fails_gives_way_to_the_next_lower_one() -> None:
    def figure_ms(server: str, level: int) -> float:
        return math.inf if level == 0 else {"a": 10.0, "b": 10.8, "c": 90.0}[server]

    launches, state = _carry_out(figure_ms)
    assert {launch.levels for launch in launches if launch.block > FULL_BLOCKS} == {(1,)}
    assert "c" not in state.contenders


@pytest.mark.parametrize(("percent", "named"), [(30, 95), (20, 75)])
def test_the_best_of_eight_is_named_within_the_budget(percent: float, named: float) -> None:
    rates = rates_of(World(lead(percent)), RACES)
    assert rates.named >= named
    assert (rates.wrong, rates.best_dropped) == (0, 0)


def test_claims_are_rarely_false() -> None:
    # 5 % plus two standard errors.
    allowed = 5 + 200 * math.sqrt(0.05 * 0.95 / RACES)
    assert false_differences(RACES) <= allowed
    assert rates_of(World(lead(15, 2), spread=0.2), RACES).tied_wrongly <= allowed


def test_a_noisy_best_server_stays_in_the_race() -> None:
    noisy = World(lead(30, 5), spreads={"a": 0.35})
    assert rates_of(noisy, RACES).best_dropped <= 2


def test_one_disturbed_launch_in_ten_does_not_hide_the_best() -> None:
    assert rates_of(World(lead(30), disturbed=0.1), RACES).named >= 80
