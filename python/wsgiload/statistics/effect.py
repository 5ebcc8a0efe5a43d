"""Compares two samples of logarithms: a factor with its confidence interval, a p value, Holm's
adjustment, and an equivalence margin. Pure.

Inputs are logarithms and outputs are factors. Only whole runs are compared: the millions of
requests of one run are correlated, so a test on requests would find any difference significant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import fmean, variance

from wsgiload.statistics.sessions import NONE, Spread

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
# Of the error probability of a report, for the claims that it is about.
DECISIVE_SHARE = 0.9
# More degrees of freedom make no difference.
_NORMAL_DEGREES = 1_000_000


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


def unpaired_effect(
    first: Sequence[float], second: Sequence[float], between: Spread = NONE
) -> Effect:
    """Two samples from different sessions, without common rounds: Welch's t test and interval, with
    the variance between the sessions as a third component."""
    parts = [(variance(sample) / len(sample), len(sample) - 1.0) for sample in (first, second)]
    parts.append((2 * between.deviation**2, between.degrees))
    total = sum(part for part, _ in parts)
    # Satterthwaite's degrees of freedom, rounded down, because our t has integer ones only; this
    # widens the interval slightly.
    weights = sum(part**2 / degrees for part, degrees in parts)
    degrees = min(_NORMAL_DEGREES, int(total**2 / weights)) if weights else _NORMAL_DEGREES
    mean, error = fmean(first) - fmean(second), math.sqrt(total)
    interval = _t_interval(mean, error, max(1, degrees))
    return Effect(interval, _t_p(mean, error, max(1, degrees)), min(len(first), len(second)))


def _t_interval(mean: float, error: float, degrees: int) -> Interval:
    return Interval(mean, t_quantile(0.975, degrees) * error, t_quantile(0.95, degrees) * error)


def t_test_p(values: Sequence[float]) -> float:
    """Two-sided p of Student's t test that the mean of the values is zero."""
    error = math.sqrt(variance(values) / len(values))
    return _t_p(fmean(values), error, len(values) - 1)


def _t_p(mean: float, error: float, degrees: int) -> float:
    if error == 0:
        return float(mean == 0)
    return 2 * t_cumulative(-abs(mean) / error, degrees)


def holm(probabilities: Sequence[float], weights: Sequence[float] | None = None) -> list[float]:
    """p values adjusted for multiple tests, in the given order (Holm 1979, section 3: a test may
    use the share of the error probability that its weight is of the weights not yet rejected)."""
    shares = [1.0] * len(probabilities) if weights is None else weights
    order = sorted(
        range(len(probabilities)), key=lambda place: probabilities[place] / shares[place]
    )
    adjusted, largest, left = [1.0] * len(probabilities), 0.0, sum(shares)
    for place in order:
        largest = max(largest, min(1.0, probabilities[place] / shares[place] * left))
        adjusted[place] = largest
        left -= shares[place]
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


_TINY = 1e-300
_PRECISION = 1e-15
_MAX_TERMS = 10_000


# Student's t: the distribution function uses the incomplete beta function (Abramowitz and Stegun,
# Handbook of Mathematical Functions, 26.5.8 as a continued fraction, 26.7.1); its inverse uses
# bisection. A report needs only a few calls, so accuracy matters more than speed.
@cache
def t_quantile(probability: float, degrees: int) -> float:
    """The quantile of t with ``degrees`` degrees of freedom, for 0 < probability < 1."""
    if not 0 < probability < 1 or degrees < 1:
        raise ValueError(
            f"there is no t quantile of {probability:g} with {degrees} degrees of freedom"
        )
    if probability < 0.5:
        return -t_quantile(1 - probability, degrees)
    low, high = 0.0, 1.0
    while t_cumulative(high, degrees) < probability:
        low, high = high, 2 * high
    while high - low > _PRECISION * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if t_cumulative(middle, degrees) < probability else (low, middle)
    return high


def t_cumulative(value: float, degrees: int) -> float:
    """The probability that t with ``degrees`` degrees of freedom is below ``value``."""
    beyond = _incomplete_beta(degrees / 2, 0.5, degrees / (degrees + value * value)) / 2
    return 1 - beyond if value > 0 else beyond


def _incomplete_beta(a: float, b: float, x: float) -> float:
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    if x < (a + 1) / (a + b + 2):  # here the fraction converges fast
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, 1 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction, evaluated by Lentz's method."""
    upper, lower, value = 1.0, _away_from_zero(1 - (a + b) * x / (a + 1)), 0.0
    lower = 1 / lower
    value = lower
    for term in range(1, _MAX_TERMS):
        even = term * (b - term) * x / ((a + 2 * term - 1) * (a + 2 * term))
        odd = -(a + term) * (a + b + term) * x / ((a + 2 * term) * (a + 2 * term + 1))
        for coefficient in (even, odd):
            lower = 1 / _away_from_zero(1 + coefficient * lower)
            upper = _away_from_zero(1 + coefficient / upper)
            value *= lower * upper
        if abs(lower * upper - 1) < _PRECISION:
            break
    return value


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
