"""A trend along an order that differs between repetitions. Pure.

Each subject is observed once in each repetition, at a place of its own. Subjects and repetitions
may each shift what is observed; both shifts are removed by centring the complete table twice, and
what remains is regressed on the place (two-way fixed effects).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from statistics import fmean
from typing import TypeAlias, TypeVar

from wsgiload.statistics.effect import Interval
from wsgiload.statistics.student import t_quantile

# Where it was observed, and what.
Point: TypeAlias = tuple[float, float]
Subject = TypeVar("Subject", bound=Hashable)


def complete_table(points: Mapping[tuple[Subject, int], Point]) -> list[list[Point]]:
    """A row for each subject that was observed in every repetition; centring needs all of them."""
    repetitions = sorted({repetition for _, repetition in points})
    subjects = dict.fromkeys(subject for subject, _ in points)
    return [
        [points[subject, one] for one in repetitions]
        for subject in subjects
        if all((subject, one) in points for one in repetitions)
    ]


def trend(table: Sequence[Sequence[Point]]) -> Interval | None:
    """By how much the observation rises per unit of place; None where every repetition has the same
    order, or too few observations are left to tell."""
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
    left = math.fsum(
        (value - slope * place) ** 2 for place, value in zip(flat, values, strict=True)
    )
    error = math.sqrt(left / degrees / spread)
    return Interval(slope, t_quantile(0.975, degrees) * error, t_quantile(0.95, degrees) * error)


def _centred(table: Sequence[Sequence[float]]) -> list[list[float]]:
    """Without the means of its rows and columns."""
    rows = [fmean(row) for row in table]
    columns = [fmean(column) for column in zip(*table, strict=True)]
    middle = fmean(rows)
    return [
        [value - of_row - of_column + middle for value, of_column in zip(row, columns, strict=True)]
        for row, of_row in zip(table, rows, strict=True)
    ]
