"""Which launch a race with an objective chooses next, in virtual time, and how often simulated races
find the leanest configuration."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pytest

from wsgiload.analysis.objective import parse_objective
from wsgiload.analysis.objective_races import objective_state
from wsgiload.capacity_search.rates import SHARES
from wsgiload.documents.cell_result import CellResult
from wsgiload.experiment.plan import AROUND_A_LAUNCH_S
from wsgiload.experiment.settings import MIN_BLOCKS
from wsgiload.experiment.slices import slice_ns
from wsgiload.loads.options import Level
from wsgiload.procedures.race import Judge, Launch, ObjectiveState, Outcome, Plan, objective_race
from wsgiload.statistics.leading import Rules

from .filled import rates, resources
from .invented_cells import cell

MS, MIB, LIMIT_MS = 1e6, 1024**2, 50.0
OBJECTIVE = parse_objective([f"p99<{LIMIT_MS:g}ms"])
NAMES = ("a", "b", "c")


def _carry_out(
    judge: Judge, measure: Callable[[Launch], float], budget_s: float, levels: int = 2
) -> tuple[list[Launch], ObjectiveState]:
    plan = Plan([NAMES] * 10, levels, budget_s, [3.0] * levels, Rules())
    procedure, launches = objective_race(plan, judge), list[Launch]()
    try:
        launch = next(procedure)
        while True:
            launches.append(launch)
            launch = procedure.send(Outcome({}, measure(launch)))
    except StopIteration as end:
        return launches, end.value


@pytest.mark.parametrize(
    ("outcomes", "levels"),
    [
        ({1: "winner", 0: "winner"}, [1, 0]),
        ({1: "winner", 0: "failed"}, [1, 0]),
        ({1: "failed", 2: "winner"}, [1, 2]),
        ({1: "failed", 2: "failed", 3: "winner"}, [1, 2, 3]),
        ({1: "undecided", 2: "winner"}, [1, 2]),
    ],
)
def test_levels_follow_from_the_middle_until_the_highest_that_is_met(
    outcomes: Mapping[int, Literal["winner", "failed", "undecided"]], levels: list[int]
) -> None:
    counts = dict.fromkeys(range(4), 0)

    def judge(level: int) -> ObjectiveState:
        is_enough = counts[level] >= 2 * len(NAMES)
        outcome = outcomes[level] if is_enough else "undecided"
        return ObjectiveState(outcome, NAMES, is_met=outcome == "winner")

    def measure(launch: Launch) -> float:
        counts[launch.levels[0]] += 1
        return 1.0

    launches, state = _carry_out(judge, measure, 300.0, levels=4)
    assert list(dict.fromkeys(launch.levels[0] for launch in launches)) == levels
    assert state.outcome == "winner"
    assert [launch.block for launch in launches[:6]] == [1, 1, 1, 2, 2, 2]


def test_higher_levels_follow_one_that_only_a_leaner_configuration_leaves_undecided() -> None:
    launches, state = _carry_out(
        lambda _: ObjectiveState("undecided", NAMES, is_met=True), lambda _: 1.0, 300.0, levels=4
    )
    assert list(dict.fromkeys(launch.levels[0] for launch in launches)) == [1, 0]
    assert state.is_met


def test_a_configuration_that_dropped_out_is_not_launched_again() -> None:
    def judge(_: int) -> ObjectiveState:
        return ObjectiveState("undecided", ("a", "b") if counted else NAMES)

    counted = list[str]()

    def measure(launch: Launch) -> float:
        counted.append(launch.server)
        return 3.0

    launches, _ = _carry_out(judge, measure, 300.0, levels=1)
    assert [launch.block for launch in launches if launch.server == "c"] == [1]


def test_no_launch_begins_that_may_exceed_the_budget() -> None:
    launches, state = _carry_out(lambda _: ObjectiveState("undecided", NAMES), lambda _: 4.0, 38.0)
    assert len(launches) == 9
    assert not state.is_decided


def test_a_launch_takes_as_long_as_its_level_needs() -> None:
    plan = Plan([NAMES], 3, 5.0, [3.0, 5.0, 90.0], Rules())
    procedure = objective_race(plan, lambda _: ObjectiveState("undecided", NAMES))
    assert next(procedure).levels == (1,)


# --- 8 servers with 6 sizes each


@dataclass(frozen=True)
class _Setting:
    """p99 grows like that of a queue; above its capacity, a configuration fails."""

    capacity_per_s: float
    mib: int
    idle_p99_ms: float

    def p99_ms(self, rate_per_s: float) -> float:
        spare = 1 - rate_per_s / self.capacity_per_s
        return self.idle_p99_ms / spare if spare > 0.01 else 5_000.0


@dataclass
class _World:
    """48 settings, measured within 15 minutes after closed loops of 4.5 s each."""

    settings: dict[str, _Setting]
    draw: random.Random
    cells: list[CellResult]
    seconds: float = 48 * 4.5

    @property
    def rates(self) -> list[float]:
        """The highest first."""
        fastest = max(one.capacity_per_s for one in self.settings.values())
        return [share * fastest for share in reversed(SHARES)]

    def launch(self, launch: Launch) -> float:
        rate = self.rates[launch.levels[0]]
        setting = self.settings[launch.server]
        p99_ms = setting.p99_ms(rate) * math.exp(self.draw.gauss(0, 0.14))
        self.cells.append(
            cell(
                launch.server,
                launch.block,
                p99_ms * MS,
                rate=rate,
                rate_result=rates(min(rate, setting.capacity_per_s), offered_per_s=rate),
                resources=resources(memory_peak_bytes=setting.mib * MIB),
            )
        )
        took_s = slice_ns(Level(rate_per_s=rate)) / 1e9 + 0.7 + AROUND_A_LAUNCH_S
        self.seconds += took_s
        return took_s

    def judge(self, level: int) -> ObjectiveState:
        names = tuple(self.settings)
        return objective_state(self.rates[level], names, self.cells, OBJECTIVE, MIN_BLOCKS)


def _raced(seed: int) -> tuple[_World, float | None, str | None]:
    """The world after the race, and the highest rate with a winner."""
    draw = random.Random(seed)
    settings, idle_p99_ms = {}, draw.uniform(4.0, 20.0)
    for server in range(8):
        fastest = 800 * draw.uniform(0.6, 1.0)
        for size in range(6):
            mib = round(30 * math.exp(draw.gauss(0, 0.3))) * (1 + size)
            capacity_per_s = fastest * min(1.0, 0.5 + 0.15 * size)
            settings[f"s{server}-w{size}"] = _Setting(capacity_per_s, mib, idle_p99_ms)
    world = _World(settings, draw, [])
    names = tuple(settings)
    order = [draw.sample(names, len(names)) for _ in range(MIN_BLOCKS)]
    plan = Plan(order, len(SHARES), 900 - world.seconds, [7.3] * len(SHARES), Rules())
    procedure = objective_race(plan, world.judge)
    try:
        launch = next(procedure)
        while True:
            launch = procedure.send(Outcome({}, world.launch(launch)))
    except StopIteration:
        states = {rate: world.judge(level) for level, rate in enumerate(world.rates)}
    won = [(rate, one.contenders[0]) for rate, one in states.items() if one.outcome == "winner"]
    return world, *(won[0] if won else (None, None))


def _is_right(world: _World, rate: float, winner: str) -> bool:
    """Whether it meets the objective, no configuration that clearly does is leaner by more than
    10 %, and none clearly does at a higher rate."""

    def clearly(at_per_s: float) -> Sequence[int]:
        return [one.mib for one in world.settings.values() if one.p99_ms(at_per_s) < 0.6 * LIMIT_MS]

    chosen = world.settings[winner]
    leanest = min(clearly(rate), default=math.inf)
    higher = [one for one in world.rates if one > rate and clearly(one)]
    return chosen.p99_ms(rate) <= LIMIT_MS and chosen.mib <= 1.1 * leanest and not higher


def test_the_leanest_of_48_settings_is_found_in_15_minutes() -> None:
    count = int(os.environ.get("WSGILOAD_RACES", "20"))
    right = wrong = 0
    for seed in range(count):
        world, rate, winner = _raced(seed)
        assert world.seconds <= 900
        if rate is not None and winner is not None:
            right += _is_right(world, rate, winner)
            wrong += world.settings[winner].p99_ms(rate) > LIMIT_MS
    assert right / count >= 0.9
    assert wrong / count <= 0.05
