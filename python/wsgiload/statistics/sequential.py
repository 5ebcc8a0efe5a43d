"""Means that are analyzed after every round. Pure.

The error probability is divided equally between the interim analyses (K. K. G. Lan and D. L.
DeMets, "Discrete sequential boundaries for clinical trials", Biometrika 70(3), 1983, with
Bonferroni's bound over the analyses), so intervals are valid at whichever analysis the measurement
ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from wsgiload.statistics.effect import MIN_RUNS, Interval, t_quantile
from wsgiload.statistics.leading import BORROWED


def mean_at_any_analysis(
    values: Sequence[float], analyses: float, others: Sequence[Sequence[float]] = ()
) -> Interval | None:
    """The mean over rounds if further rounds may follow, with intervals that are valid at each of
    this many interim analyses. None before the first analysis, after four rounds. The variance is
    shrunk towards that of all, with the values of ``others``."""
    if len(values) < MIN_RUNS:
        return None
    groups = [values, *(one for one in others if one)]
    of_all = sum(map(_squares, groups)) / sum(len(one) - 1 for one in groups)
    borrowed = min(BORROWED, sum(len(one) - 1 for one in groups[1:]))
    degrees = len(values) - 1 + borrowed
    error = math.sqrt((_squares(values) + borrowed * of_all) / degrees / len(values))
    halves = [t_quantile(1 - beyond / 2 / analyses, degrees) * error for beyond in (0.05, 0.10)]
    return Interval(fmean(values), *halves)


def _squares(values: Sequence[float]) -> float:
    """The sum of squared deviations from the mean."""
    mean = fmean(values)
    return sum((value - mean) ** 2 for value in values)
