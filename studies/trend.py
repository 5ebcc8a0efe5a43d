"""A trend along an order that differs between repetitions. Pure.

Each subject is observed once per repetition, at a different position. Subjects and repetitions may
each shift the observations. Double centring of the complete table removes both shifts, and the
residuals are regressed on the position (two-way fixed effects).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from statistics import fmean
from typing import TypeAlias, TypeVar

from wsgiload.statistics.effect import Interval, t_quantile

# Position and observed value.
Point: TypeAlias = tuple[float, float]
Subject = TypeVar("Subject", bound=Hashable)


def complete_table(points: Mapping[tuple[Subject, int], Point]) -> list[list[Point]]:
    """A row for each subject that was observed in every repetition, as centring requires."""
    repetitions = sorted({repetition for _, repetition in points})
    subjects = dict.fromkeys(subject for subject, _ in points)
    return [
        [points[subject, one] for one in repetitions]
        for subject in subjects
        if all((subject, one) in points for one in repetitions)
    ]


def trend(table: Sequence[Sequence[Point]]) -> Interval | None:
    """The change of the observation per unit of position; None if every repetition has the same
    order, or if there are too few observations."""
    places = _centred([[place for place, _ in row] for row in table])
    values = [
        one for row in _centred([[value for _, value in row] for row in table]) for one in row
    ]
    flat = [one for row in places for one in row]
    degrees = (len(table) - 1) * (len(table[0]) - 1) - 1
    spread = math.fsum(place**2 for place in flat)
    if degrees < 1 or spread < 1e-9:
        return None
    slope = math.fsum(place * value for place, value in zip(flat, values, strict=True)) / spread
    residual = math.fsum(
        (value - slope * place) ** 2 for place, value in zip(flat, values, strict=True)
    )
    error = math.sqrt(residual / degrees / spread)
    return Interval(slope, t_quantile(0.975, degrees) * error, t_quantile(0.95, degrees) * error)


def _centred(table: Sequence[Sequence[float]]) -> list[list[float]]:
    """The table without the means of its rows and columns."""
    rows = [fmean(row) for row in table]
    columns = [fmean(column) for column in zip(*table, strict=True)]
    middle = fmean(rows)
    return [
        [value - of_row - of_column + middle for value, of_column in zip(row, columns, strict=True)]
        for row, of_row in zip(table, rows, strict=True)
    ]
