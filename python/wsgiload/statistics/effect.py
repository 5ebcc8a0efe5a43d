"""Compares two samples of logarithms: a factor with its confidence interval, a p value, Holm's
adjustment, and an equivalence margin. Pure.

Inputs are logarithms and outputs are factors. Only whole runs are compared: the millions of
requests of one run are correlated, so a test on requests would find any difference significant.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, variance

from wsgiload.statistics.student import t_cumulative, t_quantile

# With three runs and the usual spread, the interval spans a factor of ten.
MIN_RUNS = 4
SIGNIFICANT = 0.05
SAME_WITHIN = 0.05
# The difference for which the usual number of rounds is planned, and the assumed standard deviation
# of the logarithm of p99 between paired rounds.
PLANNED_FACTOR = 1.3
PLANNED_DEVIATION = 0.2
# The largest number of runs that is suggested.
MAX_RUNS = 100

# Up to this number of values, a permutation test counts all divisions: 32 values take 0.1 s.
MAX_EXACT_VALUES = 32
RANDOM_DIVISIONS = 20_000
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its 95 % and 90 % confidence intervals. Two one-sided tests at 5 % use the 90 %
    interval."""

    mean: float
    half_95: float
    half_90: float

    def excludes_zero(self) -> bool:
        """Whether zero lies outside the 95 % interval."""
        return abs(self.mean) > self.half_95

    @property
    def margin(self) -> float:
        """The smallest margin for which two one-sided tests (TOST) at 5 % reject a larger
        difference in either direction."""
        return abs(self.mean) + self.half_90

    def lies_within(self, margin: float) -> bool:
        """Whether two one-sided tests (TOST) at 5 % reject a difference larger than ``margin``."""
        return self.margin < margin


@dataclass(frozen=True, slots=True)
class Effect:
    """The difference between the logarithms of the first and the second sample, with its p
    value."""

    interval: Interval
    p: float
    runs: int

    @property
    def factor(self) -> float:
        """The ratio of the first to the second."""
        return math.exp(self.interval.mean)

    @property
    def bounds(self) -> tuple[float, float]:
        """The 95 % confidence interval of the factor."""
        middle, half = self.interval.mean, self.interval.half_95
        return math.exp(middle - half), math.exp(middle + half)

    def inverted(self) -> Effect:
        """The ratio of the second to the first."""
        return replace(self, interval=replace(self.interval, mean=-self.interval.mean))


def mean_interval(values: Sequence[float]) -> Interval:
    """Student's t interval of the mean of two or more independent values."""
    return _t_interval(fmean(values), math.sqrt(variance(values) / len(values)), len(values) - 1)


def paired_effect(differences: Sequence[float]) -> Effect:
    """The paired t test of differences within rounds, with its interval (Student 1908).

    Rank and sign tests ignore how closely the rounds agree: with six rounds, one that disagrees
    leaves the sign-flip test without power. Decision 25 covers the others.
    """
    return Effect(mean_interval(differences), t_test_p(differences), len(differences))


def unpaired_effect(first: Sequence[float], second: Sequence[float]) -> Effect:
    """Two samples without common rounds: Welch's interval and a permutation test of the labels."""
    errors = [variance(sample) / len(sample) for sample in (first, second)]
    spread = sum(errors)
    weights = [
        error**2 / (len(sample) - 1) for error, sample in zip(errors, (first, second), strict=True)
    ]
    # Rounded down, because our t has integer degrees of freedom only; this widens the interval
    # slightly.
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
    """Two-sided: the share of all divisions of the values whose means differ at least as much as
    the observed ones. Exact for up to ``MAX_EXACT_VALUES`` values, otherwise from random divisions.
    """
    values = [*first, *second]
    count = len(first)
    middle = fmean(values)
    # With centred values, the sum of one part determines the difference of the means.
    centred = [value - middle for value in values]
    observed = sum(centred[:count])
    scale = sum(map(abs, centred))

    threshold = abs(observed) - _ROUNDING * scale

    if threshold <= 0:
        return 1.0
    if len(values) <= MAX_EXACT_VALUES:
        return _count_beyond(centred, count, threshold) / math.comb(len(values), count)
    draw = random.Random(count)
    drawn = [abs(sum(draw.sample(centred, count))) for _ in range(RANDOM_DIVISIONS)]
    return (1 + sum(total >= threshold for total in drawn)) / (1 + RANDOM_DIVISIONS)


def _count_beyond(values: Sequence[float], count: int, threshold: float) -> int:
    """The number of subsets of this size whose sum is at least ``threshold`` away from zero.

    A subset consists of a part of the first half of the values and a part of the second one
    (Horowitz and Sahni 1974): the sums of both halves replace those of all subsets.
    """
    half = len(values) // 2
    first, second = _sums_by_size(values[:half]), _sums_by_size(values[half:])
    beyond = 0
    for size, sums in enumerate(first):
        if not 0 <= count - size < len(second):
            continue
        others = sorted(second[count - size])
        for one in sums:
            beyond += len(others) - bisect_left(others, threshold - one)
            beyond += bisect_right(others, -threshold - one)
    return beyond


def _sums_by_size(values: Sequence[float]) -> list[list[float]]:
    """The sums of all subsets, by the size of the subset."""
    sums: list[list[float]] = [[0.0]]
    for value in values:
        smaller = [[], *sums]
        larger = [*sums, []]
        sums = [
            without + [total + value for total in with_one]
            for without, with_one in zip(larger, smaller, strict=True)
        ]
    return sums


def holm(probabilities: Sequence[float]) -> list[float]:
    """p values adjusted for multiple tests (Holm 1979), in the given order."""
    order = sorted(range(len(probabilities)), key=lambda place: probabilities[place])
    adjusted = [1.0] * len(probabilities)
    largest = 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, probabilities[place] * (len(probabilities) - rank)))
        adjusted[place] = largest
    return adjusted


def runs_needed(pairs: int, deviation: float = PLANNED_DEVIATION) -> int:
    """The fewest rounds, at least six and at most ``MAX_RUNS``, that detect a ratio of 1.3 between
    one of this many pairs with a probability of one half.

    There, the expected t value reaches the critical value after Bonferroni's adjustment, for this
    standard deviation of the paired logarithms.
    """
    runs = 6
    target = math.log(PLANNED_FACTOR)
    probability = 1 - SIGNIFICANT / max(1, pairs) / 2
    while runs < MAX_RUNS and target < deviation * t_quantile(probability, runs - 1) / math.sqrt(
        runs
    ):
        runs += 1
    return runs


def deviation_of(bounds: tuple[float, float], runs: int) -> float:
    """The standard deviation of the paired logarithms that a 95 % interval of a factor implies."""
    low, high = bounds
    half = math.log(high / low) / 2
    return half * math.sqrt(runs) / t_quantile(0.975, runs - 1)
