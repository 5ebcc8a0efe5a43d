"""What two samples of logarithms say about each other: a factor with its interval, a p value,
Holm's adjustment, and the margin within which they agree.

Pure. Everything is a logarithm on the way in and a factor on the way out. Only whole runs are
compared: requests of one run depend on each other and number millions, so that any test on them
finds any difference.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, variance

from wsgiload.statistics.student import t_cumulative, t_quantile

# With three runs the interval spans a factor of ten at the usual spread.
FEWEST_RUNS = 4
SIGNIFICANT = 0.05
SAME_WITHIN = 0.05
# The difference that the usual number of rounds is planned for, and the spread of the logarithm of
# p99 between paired rounds that is planned with.
PLANNED_FACTOR = 1.3
PLANNED_DEVIATION = 0.2
# Nobody makes more.
MOST_RUNS = 100

# Up to so many arrangements all of them are counted; beyond, so many random ones.
MOST_ARRANGEMENTS = 20_000
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its 95 % and 90 % intervals; the latter is what two one-sided tests at 5 % look
    at."""

    mean: float
    half_95: float
    half_90: float

    def excludes_zero(self) -> bool:
        """Whether zero lies outside the 95 % interval."""
        return abs(self.mean) > self.half_95

    @property
    def margin(self) -> float:
        """The smallest margin for which two one-sided tests (TOST) at 5 % reject a larger value on
        either side."""
        return abs(self.mean) + self.half_90

    def lies_within(self, margin: float) -> bool:
        """Whether two one-sided tests (TOST) at 5 % reject a value beyond ``margin``."""
        return self.margin < margin


@dataclass(frozen=True, slots=True)
class Effect:
    """How much larger the logarithms of the first sample are, and how likely chance alone makes
    that much."""

    interval: Interval
    p: float
    runs: int

    @property
    def factor(self) -> float:
        """The first over the second."""
        return math.exp(self.interval.mean)

    @property
    def bounds(self) -> tuple[float, float]:
        """The 95 % interval of the factor."""
        middle, half = self.interval.mean, self.interval.half_95
        return math.exp(middle - half), math.exp(middle + half)

    def inverted(self) -> Effect:
        """How much smaller they are."""
        return replace(self, interval=replace(self.interval, mean=-self.interval.mean))


def mean_interval(values: Sequence[float]) -> Interval:
    """Of the mean of independent values, two or more, by Student's t."""
    return _t_interval(fmean(values), math.sqrt(variance(values) / len(values)), len(values) - 1)


def paired_effect(differences: Sequence[float]) -> Effect:
    """Of differences within rounds: the paired t test and its interval (Student 1908).

    Rank and sign tests ignore by how much the rounds agree: one lost round of six leaves the
    sign-flip test without any power, and decision 25 lists the others.
    """
    return Effect(mean_interval(differences), t_test_p(differences), len(differences))


def unpaired_effect(first: Sequence[float], second: Sequence[float]) -> Effect:
    """Of two samples without rounds in common: Welch's interval, and the permutation of their
    labels."""
    errors = [variance(sample) / len(sample) for sample in (first, second)]
    spread = sum(errors)
    weights = [
        error**2 / (len(sample) - 1) for error, sample in zip(errors, (first, second), strict=True)
    ]
    # Rounded down, because our t knows whole degrees only; that widens the interval a little.
    degrees = (
        max(1, math.floor(spread**2 / sum(weights))) if spread else len(first) + len(second) - 2
    )
    interval = _t_interval(fmean(first) - fmean(second), math.sqrt(spread), degrees)
    return Effect(interval, permutation_p(first, second), min(len(first), len(second)))


def _t_interval(mean: float, error: float, degrees: int) -> Interval:
    return Interval(mean, t_quantile(0.975, degrees) * error, t_quantile(0.95, degrees) * error)


def t_test_p(values: Sequence[float]) -> float:
    """Two-sided p of Student's t test that the mean of the values is zero."""
    mean, error = fmean(values), math.sqrt(variance(values) / len(values))
    if error == 0:
        return float(mean == 0)
    return 2 * t_cumulative(-abs(mean) / error, len(values) - 1)


def permutation_p(first: Sequence[float], second: Sequence[float]) -> float:
    """Two-sided: the share of all ways to divide the values whose means lie as far apart as
    ours."""
    values = [*first, *second]
    count = len(first)
    middle = fmean(values)
    # Of centred values, the sum of one part determines the difference of the means.
    centred = [value - middle for value in values]
    observed = sum(centred[:count])
    scale = sum(map(abs, centred))

    if math.comb(len(values), count) <= MOST_ARRANGEMENTS:
        return _share_beyond(map(sum, itertools.combinations(centred, count)), observed, scale)

    draw = random.Random(count)
    drawn = (sum(draw.sample(centred, count)) for _ in range(MOST_ARRANGEMENTS))
    return _share_beyond(itertools.chain([observed], drawn), observed, scale)


def _share_beyond(sums: Iterable[float], observed: float, scale: float) -> float:
    beyond = [abs(total) >= abs(observed) - _ROUNDING * scale for total in sums]
    return sum(beyond) / len(beyond)


def holm(probabilities: Sequence[float]) -> list[float]:
    """Each p adjusted for being one of several (Holm 1979), in the order given."""
    order = sorted(range(len(probabilities)), key=lambda place: probabilities[place])
    adjusted = [1.0] * len(probabilities)
    largest = 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, probabilities[place] * (len(probabilities) - rank)))
        adjusted[place] = largest
    return adjusted


def runs_needed(pairs: int, deviation: float = PLANNED_DEVIATION) -> int:
    """The fewest rounds, six at least, with which a difference of 1.3 between one of so many pairs
    is found as often as not; at most ``MOST_RUNS``.

    That is where the expected t value reaches the critical one, after Bonferroni's adjustment, at
    this deviation of the paired logarithms.
    """
    runs = 6
    least = math.log(PLANNED_FACTOR)
    probability = 1 - SIGNIFICANT / max(1, pairs) / 2
    while runs < MOST_RUNS and least < deviation * t_quantile(probability, runs - 1) / math.sqrt(
        runs
    ):
        runs += 1
    return runs


def deviation_of(bounds: tuple[float, float], runs: int) -> float:
    """The deviation of the paired logarithms behind a 95 % interval of a factor."""
    low, high = bounds
    half = math.log(high / low) / 2
    return half * math.sqrt(runs) / t_quantile(0.975, runs - 1)
