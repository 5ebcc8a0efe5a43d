"""Comparisons of simulated stored sweeps that differ only by their sessions, with the analysis of
``wsgiload compare``; ``make simulate`` prints how often it finds a difference. Decision 35 has its
output.

A session shifts the logarithm of each figure of each cell, either each on its own or all together;
runs scatter around it.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from wsgiload.analysis.aggregate import ServerLevel
from wsgiload.analysis.comparison import JUDGED, SamplePair, judged_pairs
from wsgiload.analysis.repeats import Learned, Session, SessionCell, learn
from wsgiload.statistics.effect import unpaired_effect

SERVERS, LEVELS, RUNS = 3, 3, 6
CELLS = tuple(
    SessionCell(ServerLevel(f"s{server}", 1000.0 * level, None), figure, ())
    for figure in JUDGED
    for server in range(SERVERS)
    for level in range(1, LEVELS + 1)
)
REPEATS = (0, 1, 2, 4, 9)
Sweep = dict[SessionCell, list[float]]


@dataclass(frozen=True)
class World:
    """The standard deviations between sessions and between the runs of one."""

    between: float = 0.1
    within: float = 0.1
    is_common: bool = False
    # The change of the second sweep's p99 of the first server, as a logarithm.
    change: float = 0.0

    def sweep(self, draw: random.Random) -> Sweep:
        """The logarithms of one stored sweep."""
        common = {figure: draw.gauss(0, self.between) for figure in JUDGED}
        shifts = {
            cell: common[cell.figure] if self.is_common else draw.gauss(0, self.between)
            for cell in CELLS
        }
        return {
            cell: [shift + draw.gauss(0, self.within) for _ in range(RUNS)]
            for cell, shift in shifts.items()
        }


def session_of(sweep: Sweep) -> Session:
    """A sweep as ``repeats`` reads it."""
    means = {cell: (fmean(runs), variance(runs) / RUNS) for cell, runs in sweep.items()}
    return Session(b"host", b"conditions", means)


def is_different(world: World, seed: int, repeats: int, *, only_first: bool = False) -> bool:
    """Whether two sweeps differ in any figure of any server at any level, after the first one was
    repeated so often. ``only_first``: only p99 of the first server at the first level counts."""
    draw = random.Random(seed)
    first, *others = (world.sweep(draw) for _ in range(repeats + 1))
    second = world.sweep(draw)
    learned = learn(session_of(first), list(map(session_of, others)))
    changed = {cell: world.change * (cell == _CHANGED) for cell in CELLS}
    pairs = {
        figure: [
            _pair(cell, first[cell], [one + changed[cell] for one in second[cell]], learned)
            for cell in CELLS
            if cell.figure == figure
        ]
        for figure in JUDGED
    }
    entries = judged_pairs("p99", lambda figure: pairs[figure])
    found = [
        (entry.first, entry.rate, one.figure)
        for entry in entries
        for one in (entry, *entry.others)
        if one.conclusion == "different"
    ]
    if only_first:
        return (_CHANGED.level.server, _CHANGED.level.rate, "p99") in found
    return bool(found)


_CHANGED = next(cell for cell in CELLS if cell.figure == "p99")


def _pair(
    cell: SessionCell, before: Sequence[float], after: Sequence[float], learned: Learned
) -> SamplePair:
    level = cell.level
    effect = unpaired_effect(after, before, learned.at(level, cell.figure))
    return SamplePair(level.server, level.server, level, None, effect, RUNS, False, None)


def percent_different(
    world: World, sweeps: int, repeats: int, *, only_first: bool = False
) -> float:
    """In percent of pairs of sweeps."""
    found = sum(is_different(world, seed, repeats, only_first=only_first) for seed in range(sweeps))
    return 100 * found / sweeps


def main() -> None:
    """Print one line per world."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sweeps", type=int, default=300)
    sweeps = parser.parse_args().sweeps
    sys.stdout.write(
        f"{sweeps} pairs of equal sweeps each: {SERVERS} servers, {LEVELS} levels, {len(JUDGED)} "
        f"figures, {RUNS} runs; any false difference, in %, after so many repetitions\n"
        f"{'':46}" + "".join(f"{repeats:8}" for repeats in REPEATS) + "\n"
    )
    for between in (0.05, 0.1, 0.2):
        for is_common in (False, True):
            world = World(between, is_common=is_common)
            kind = "all cells together" if is_common else "each cell on its own"
            _say(f"{100 * between:g} % between sessions, {kind}", world, sweeps)
    for between in (0.05, 0.1):
        for factor in (1.3, 1.5, 2.0):
            world = World(between, change=math.log(factor))
            label = f"found: {between * 100:g} %, one p99 {factor:g}-fold"
            _say(label, world, sweeps, only_first=True)


def _say(label: str, world: World, sweeps: int, *, only_first: bool = False) -> None:
    rates = [percent_different(world, sweeps, one, only_first=only_first) for one in REPEATS]
    sys.stdout.write(f"{label:46}" + "".join(f"{rate:8.1f}" for rate in rates) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
