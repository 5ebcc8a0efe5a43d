"""Races: blocks of launches until the leaders are known, or the leanest configuration that meets an
objective, or the budget ends. Pure: generators that yield the next launch and receive its outcome,
so tests and ``make simulate`` run them in virtual time, and a resumed run replays its stored
outcomes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from wsgiload.statistics.leading import Rules, State, advance

# How many configurations remain after the first block of a race with an objective. Few suffice,
# because they only have to meet it.
FIELD = 4
# Blocks that measure every level; later ones measure only the level that the answer is about.
FULL_BLOCKS = 2


@dataclass(frozen=True, slots=True)
class Drop:
    """A configuration that is not launched again: after this many blocks it missed the objective,
    or others (``behind`` the first of them) are leaner or faster."""

    server: str
    after_block: int
    behind: str | None = None


@dataclass(frozen=True, slots=True)
class ObjectiveState:
    """What is known at a level: the leanest configuration first."""

    outcome: Literal["winner", "undecided", "failed"]
    contenders: tuple[str, ...]
    dropped: tuple[Drop, ...] = ()
    # Whether some contender certainly meets the objective, even if a leaner one is undecided.
    is_met: bool = False
    # Whether nothing leaner can still meet it, since every such contender missed once.
    is_final: bool = False

    @property
    def is_decided(self) -> bool:
        """Whether the leanest contender meets the objective, or none does, or further blocks would
        not change what is known."""
        return self.outcome != "undecided" or self.is_final


@dataclass(frozen=True, slots=True)
class Launch:
    """One server, started once and measured at these levels (their places, the decisive one
    first). ``block`` counts from 1."""

    block: int
    server: str
    levels: tuple[int, ...]
    # Before this block.
    state: State | ObjectiveState


@dataclass(frozen=True, slots=True)
class Outcome:
    """The logarithm of the figure at each level of a launch (infinite: failed; None: no valid
    measurement), and how long the launch took."""

    figures: Mapping[int, float | None]
    seconds: float


@dataclass(frozen=True, slots=True)
class Plan:
    """The servers of each block in their order, the number of levels from the highest down, and the
    expected duration of a launch: of the first one, or with an objective at each level."""

    order: Sequence[Sequence[str]]
    levels: int
    budget_s: float
    launch_s: Sequence[float]
    rules: Rules


@dataclass(slots=True)
class _Track:
    """The race at one level."""

    state: State
    blocks: list[dict[str, float]] = field(default_factory=list)


Race = Generator[Launch, Outcome, State]


def race(plan: Plan) -> Race:
    """Launch the servers of each block, except those that dropped out at the highest level that any
    server sustains, until no contender is open or the next launch would exceed the budget."""
    tracks = [_Track(State(tuple(plan.order[0]))) for _ in range(plan.levels)]
    left_s, slowest_s = plan.budget_s, plan.launch_s[0]
    for number, servers in enumerate(plan.order, start=1):
        decisive = _decisive(tracks)
        state = tracks[decisive].state
        if number > 1 and state.is_decided:
            break
        every = tuple(range(plan.levels))
        levels = every if number <= FULL_BLOCKS else (decisive,)
        for track in tracks:
            track.blocks.append({})
        longest_s = 0.0
        for server in (name for name in servers if name in state.contenders):
            if slowest_s > left_s:
                return state
            outcome = yield Launch(number, server, levels, state)
            left_s -= outcome.seconds
            longest_s = max(longest_s, outcome.seconds)
            slowest_s = max(slowest_s, longest_s) if number > 1 else longest_s
            for level, figure in outcome.figures.items():
                if figure is not None:
                    tracks[level].blocks[-1][server] = figure
        for level in levels:
            tracks[level].state = advance(tracks[level].state, tracks[level].blocks, plan.rules)
        # The launches after the full blocks measure one level.
        slowest_s = longest_s * (1 if number != FULL_BLOCKS else 1 / plan.levels)
    return tracks[_decisive(tracks)].state


def _decisive(tracks: Sequence[_Track]) -> int:
    """The highest level at which some server did not fail; the lowest if there is none."""
    return next((at for at, one in enumerate(tracks) if one.state.contenders), len(tracks) - 1)


def first_level(levels: int) -> int:
    """The level in the middle, at which a race with an objective begins."""
    return (levels - 1) // 2


Judge = Callable[[int], ObjectiveState]


def objective_race(plan: Plan, judge: Judge) -> Generator[Launch, Outcome, ObjectiveState]:
    """Launch the contenders of each block at a level in the middle, until the leanest meets the
    objective or the planned blocks end; then at higher levels, until no configuration meets it. If
    none does in the middle, at lower ones, until one does."""
    left_s, level, step, found = plan.budget_s, first_level(plan.levels), 0, None
    while 0 <= level < plan.levels:
        state, spent_s = yield from _race_at(level, left_s, plan, judge)
        left_s -= spent_s
        found = state if state.is_met else found
        further = -1 if state.is_met else 1
        if step not in (0, further):
            break
        step = further
        level += step
    return found or state


def _race_at(
    level: int, budget_s: float, plan: Plan, judge: Judge
) -> Generator[Launch, Outcome, tuple[ObjectiveState, float]]:
    spent_s = longest_s = 0.0
    state = judge(level)
    for number, servers in enumerate(plan.order, start=1):
        if state.is_decided:
            break
        for server in (name for name in servers if name in state.contenders):
            if spent_s + (longest_s or plan.launch_s[level]) > budget_s:
                return judge(level), spent_s
            outcome = yield Launch(number, server, (level,), state)
            spent_s += outcome.seconds
            longest_s = max(longest_s, outcome.seconds)
        state = judge(level)
    return state, spent_s
