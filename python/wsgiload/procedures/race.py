"""The default run: blocks of launches until the leaders are known or the budget ends. Pure: a
generator that yields the next launch and receives its outcome, so tests and ``make simulate`` run
it in virtual time, and a resumed run replays its stored outcomes.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field

from wsgiload.statistics.leading import Rules, State, advance

# Blocks that measure every level; later ones measure only the level that the answer is about.
FULL_BLOCKS = 2


@dataclass(frozen=True, slots=True)
class Launch:
    """One server, started once and measured at these levels (their places, the decisive one
    first). ``block`` counts from 1."""

    block: int
    server: str
    levels: tuple[int, ...]
    # Before this block.
    state: State


@dataclass(frozen=True, slots=True)
class Outcome:
    """The logarithm of the figure at each level of a launch (infinite: failed; None: no valid
    measurement), and how long the launch took."""

    figures: Mapping[int, float | None]
    seconds: float


@dataclass(frozen=True, slots=True)
class Plan:
    """The servers of each block in their order, the number of levels from the highest down, and the
    expected duration of the first launch."""

    order: Sequence[Sequence[str]]
    levels: int
    budget_s: float
    launch_s: float
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
    left_s, slowest_s = plan.budget_s, plan.launch_s
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
