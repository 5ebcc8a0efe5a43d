"""A figure of several runs of one tool, by the number of connections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from wsgiload.audit.run import Run

MIN_LEVELS = 3
# The ratio of the highest to the lowest level.
MIN_LEVEL_RATIO = 2.0
# The number of levels that fit into a line of text.
MAX_SHOWN_LEVELS = 4


def closed_levels(runs: Sequence[Run]) -> dict[int, list[Run]]:
    """Closed loops with responses, by their connections in ascending order; empty if there are too
    few, or too close together to show a trend."""
    levels: dict[int, list[Run]] = {}
    for run in runs:
        figures = run.figures
        if figures.connections and figures.achieved_per_s and figures.load == "closed":
            levels.setdefault(figures.connections, []).append(run)
    if len(levels) < MIN_LEVELS or max(levels) < MIN_LEVEL_RATIO * min(levels):
        return {}
    return dict(sorted(levels.items()))


def medians(
    levels: dict[int, list[Run]], figure: Callable[[Run], float | None]
) -> dict[int, float] | None:
    """The median of a figure at each level; None unless it is known at all levels."""
    by_level = {}
    for level, runs in levels.items():
        known = [value for run in runs if (value := figure(run))]
        if not known:
            return None
        by_level[level] = median(known)
    return by_level


def spread(values: dict[int, float]) -> float:
    """The largest value divided by the smallest, minus 1."""
    return max(values.values()) / min(values.values()) - 1


def some_levels(values: dict[int, float]) -> list[int]:
    """The levels that fit into a line: all of them, or the lowest, one in the middle, and the
    highest."""
    levels = list(values)
    if len(levels) <= MAX_SHOWN_LEVELS:
        return levels
    return [levels[0], levels[len(levels) // 2], levels[-1]]
