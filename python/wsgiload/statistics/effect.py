"""What two samples of logarithms say of each other: a factor with its interval, a permutation p,
Holm, equivalence.

Pure. Everything is a logarithm on the way in and a factor on the way out. Only whole runs are
compared: requests of one run depend on each other and number millions, so that any test on them
finds any difference.
"""

from __future__ import annotations

import itertools
import math
import random
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from wsgiload.statistics.student import t_quantile

# With three runs no permutation reaches 0.05, and the t interval is as wide as a barn door.
FEWEST_RUNS = 4
SIGNIFICANT = 0.05
SAME_WITHIN = 0.05

# Up to these numbers of arrangements and rounds all are counted; beyond, random ones are drawn.
MOST_ARRANGEMENTS = 20_000
MOST_ROUNDS_COUNTED = 24
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

    def lies_within(self, margin: float) -> bool:
        """Whether both one-sided tests (TOST) refuse a value beyond ``margin`` on either side."""
        return abs(self.mean) + self.half_90 < margin


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


def mean_interval(values: Sequence[float]) -> Interval:
    """Of the mean of independent values, two or more, by Student's t."""
    return _t_interval(fmean(values), math.sqrt(variance(values) / len(values)), len(values) - 1)


def paired_effect(differences: Sequence[float]) -> Effect:
    """Of differences within rounds: a t interval, and the sign-flip test."""
    return Effect(mean_interval(differences), sign_flip_p(differences), len(differences))


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


def sign_flip_p(differences: Sequence[float]) -> float:
    """Two-sided: the share of all ways to give the differences signs whose sum is as far from zero
    as ours."""
    sizes = [abs(difference) for difference in differences]
    total = sum(differences)
    if len(sizes) > MOST_ROUNDS_COUNTED:
        draw = random.Random(len(sizes))
        drawn = (
            sum(size if draw.random() < 0.5 else -size for size in sizes)
            for _ in range(MOST_ARRANGEMENTS)
        )
        return _share_beyond(itertools.chain([total], drawn), total, sum(sizes))

    least = abs(total) - _ROUNDING * sum(sizes)
    if least <= 0:
        return 1.0

    # Every sum is one of either half: with one of them sorted, 2^n arrangements take 2^(n/2)
    # look-ups.
    half = len(sizes) // 2
    others = sorted(_signed_sums(sizes[half:]))
    beyond = sum(
        len(others) - bisect_left(others, least - one) + bisect_right(others, -least - one)
        for one in _signed_sums(sizes[:half])
    )
    return float(beyond / 2 ** len(sizes))


def _signed_sums(sizes: Sequence[float]) -> list[float]:
    sums = [0.0]
    for size in sizes:
        sums = [total + sign * size for total in sums for sign in (1, -1)]
    return sums


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


def runs_needed(pairs: int) -> int:
    """The fewest rounds with which one of these pairs can be told apart at all, six at least.

    The smallest p of the sign-flip test is 2 of 2^runs, and Holm asks the smallest of them to be
    below 0.05 / pairs.
    """
    runs = 6
    while 2.0 ** (1 - runs) * max(1, pairs) >= SIGNIFICANT:
        runs += 1
    return runs
