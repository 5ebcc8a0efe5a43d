"""Detects differences between servers that generator delay could explain. Pure.

A quantile that is only an upper bound is compared at both ends: a server counts as slower only if
it remains slower after subtracting everything that the generator may have added.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from wsgiload.analysis.aggregate import QUANTILES, figure_of
from wsgiload.analysis.attempts import delay_of
from wsgiload.documents.cell_result import CellResult
from wsgiload.statistics.effect import Effect

REASON = "the generator's delay could explain the difference"

Compare = Callable[[Sequence[float], Sequence[float]], Effect]


def added_ns(cell: CellResult, figure: str) -> int:
    """Nanoseconds that the generator may have added to a quantile that is only an upper bound;
    otherwise 0."""
    return delay_of(cell.error_budget_ns, f"{QUANTILES[figure]:g}") if figure in QUANTILES else 0


def logarithms_without_delay(cells: Sequence[CellResult], figure: str) -> list[float]:
    """The logarithm of each figure without the delay that the generator may have added."""
    values = [(figure_of(cell, figure), added_ns(cell, figure)) for cell in cells]
    return [math.log(max(1.0, value - added)) for value, added in values if value is not None]


def remains_slower(
    effect: Effect,
    both: tuple[Sequence[CellResult], Sequence[CellResult]],
    figure: str,
    compare: Compare,
) -> bool:
    """Whether the slower server is also slower without the generator's delay. ``compare`` computes
    the effect from the logarithms of the slower and the faster server."""
    slower, faster = both if effect.interval.mean > 0 else both[::-1]
    if not any(added_ns(cell, figure) for cell in slower):
        return True

    fast = [value for cell in faster if (value := figure_of(cell, figure)) is not None]
    least = compare(logarithms_without_delay(slower, figure), [math.log(value) for value in fast])
    return least.interval.mean > 0 and least.interval.excludes_zero()
