"""How much the figures of an unchanged server differ from one session (a stored sweep) to the next.
Pure.

A session shifts all of its runs: by the host, its caches, its neighbors. Repeated runs within a
session do not show this, so two stored sweeps differ by more than their intervals say.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

# The standard deviation of logarithms between sessions, until repeated sweeps have shown it.
ASSUMED = 0.10
# The assumption counts as much as this many repetitions.
BORROWED = 4


@dataclass(frozen=True, slots=True)
class Spread:
    """The standard deviation of logarithms between sessions. ``degrees`` are the degrees of freedom
    of its square, ``sessions`` the repeated ones that it was learned from (0: assumed)."""

    deviation: float = ASSUMED
    degrees: float = math.inf
    sessions: int = 0


NONE = Spread(0.0)


@dataclass(frozen=True, slots=True)
class Scatter:
    """The squared deviations of sessions from their mean, beyond what the spread within them
    explains. ``degrees``: how many of them are free; ``repeats``: how many sessions repeat one."""

    squares: float = 0.0
    degrees: int = 0
    repeats: int = 0
    sessions: int = 0


def scatter_of(sessions: Sequence[tuple[float, float]]) -> Scatter:
    """Of one figure of one cell: the mean logarithm of each session with its squared error."""
    count = len(sessions)
    if count < 2:
        return Scatter()
    middle = fmean(mean for mean, _ in sessions)
    within = (1 - 1 / count) * sum(error for _, error in sessions)
    squares = sum((mean - middle) ** 2 for mean, _ in sessions) - within
    return Scatter(squares, count - 1, count - 1, count)


def pooled(groups: Sequence[Sequence[Scatter]]) -> Scatter:
    """Of groups of sessions, each with the scatter of its cells. A session may shift all of its
    cells together, so cells add no repeats."""
    cells = [one for group in groups for one in group]
    return Scatter(
        sum(one.squares for one in cells),
        sum(one.degrees for one in cells),
        sum(max((one.repeats for one in group), default=0) for group in groups),
        sum(max((one.sessions for one in group), default=0) for group in groups),
    )


def spread_of(own: Scatter, of_host: Scatter) -> Spread:
    """The spread of a cell: its own scatter, which borrows from that of all cells on the host,
    which borrows from the assumption (as the variances of a race do; Smyth 2004). The assumption is
    not an estimate, so only what was learned limits the degrees of freedom."""
    variance = _shrunk(ASSUMED**2, of_host)
    nearest = own if own.repeats else of_host
    if own.repeats:
        variance = _shrunk(variance, own)
    if not nearest.repeats:
        return Spread()
    degrees = (BORROWED + nearest.repeats) ** 2 / nearest.repeats
    return Spread(math.sqrt(variance), degrees, nearest.sessions)


def _shrunk(prior: float, scatter: Scatter) -> float:
    known = max(0.0, scatter.squares / scatter.degrees) if scatter.degrees else 0.0
    return (BORROWED * prior + scatter.repeats * known) / (BORROWED + scatter.repeats)
