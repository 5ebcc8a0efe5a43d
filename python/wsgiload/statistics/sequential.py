"""Comparisons of servers that are analyzed after every round: spread, effect, and lead. Pure.

The error probability is divided equally between the interim analyses of a pair (K. K. G. Lan and D.
L. DeMets, "Discrete sequential boundaries for clinical trials", Biometrika 70(3), 1983, with
Bonferroni's bound over the analyses), so p values and intervals are valid at whichever analysis the
measurement ends.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from wsgiload.statistics.effect import MIN_RUNS, Effect, Interval
from wsgiload.statistics.student import t_cumulative, t_quantile

# Logarithms of one round by server: infinite if the server failed, absent without a valid trial.
Round = Mapping[str, float]

# Common rounds that are required to estimate a deviation.
MIN_ROUNDS = 2
# The largest number of degrees of freedom that a pair borrows from the variance of all pairs.
BORROWED = 10


@dataclass(frozen=True, slots=True)
class Spread:
    """The variance of a paired difference, and its degrees of freedom."""

    variance: float
    degrees: int


@dataclass(frozen=True, slots=True)
class Lead:
    """The lead of one server over another in their common rounds, as logarithms; positive:
    faster."""

    mean: float
    rounds: int

    @property
    def total(self) -> float:
        """The sum over the rounds."""
        return self.mean * self.rounds


def lead_of(one: str, other: str, rounds: Sequence[Round]) -> Lead | None:
    """How far the first is ahead; None without a common round."""
    values = differences(other, one, rounds)
    return Lead(fmean(values), len(values)) if values else None


def differences(one: str, other: str, rounds: Sequence[Round]) -> list[float]:
    """The first minus the second, in every round in which both are known."""
    both = [(values.get(one, math.inf), values.get(other, math.inf)) for values in rounds]
    return [first - second for first, second in both if first < math.inf and second < math.inf]


def is_known(values: Round, name: str) -> bool:
    """Whether the server has a value in this round."""
    return math.isfinite(values.get(name, math.inf))


def spread_of(servers: Sequence[str], rounds: Sequence[Round]) -> Spread | None:
    """The common variance of all pairs; None unless two servers share two rounds."""
    squares, pair_degrees = 0.0, 0
    for one, other in combinations(servers, 2):
        values = differences(one, other, rounds)
        if len(values) >= MIN_ROUNDS:
            squares += _squares(values)
            pair_degrees += len(values) - 1
    if not pair_degrees:
        return None

    # Each residual of servers and rounds occurs in several pairs and counts once.
    blocks = [[name for name in servers if is_known(one, name)] for one in rounds]
    shared = [names for names in blocks if len(names) > 1]
    measured = {name for names in shared for name in names}
    degrees = sum(map(len, shared)) - len(shared) - len(measured) + 1
    return Spread(squares / pair_degrees, max(1, degrees))


def sequential_effect(values: Sequence[float], spread: Spread, analyses: float) -> Effect | None:
    """The effect from differences within rounds if further rounds may follow: p and interval are
    valid at each of this many interim analyses. None before the first analysis, after four
    rounds."""
    if len(values) < MIN_RUNS:
        return None
    degrees = len(values) - 1
    pair_spread = Spread(_squares(values) / degrees, degrees)
    joined = _joined(pair_spread, spread) if spread.degrees > pair_spread.degrees else pair_spread
    error = math.sqrt(joined.variance / len(values))
    mean = fmean(values)
    halves = [
        t_quantile(1 - beyond / 2 / analyses, joined.degrees) * error for beyond in (0.05, 0.10)
    ]
    return Effect(
        Interval(mean, *halves), min(1.0, analyses * _p(mean, error, joined)), len(values)
    )


def mean_at_any_analysis(values: Sequence[float], analyses: float) -> Interval | None:
    """The mean over rounds if further rounds may follow, with intervals that are valid at each of
    this many interim analyses. None before the first analysis, after four rounds."""
    if len(values) < MIN_RUNS:
        return None
    degrees = len(values) - 1
    error = math.sqrt(_squares(values) / degrees / len(values))
    halves = [t_quantile(1 - beyond / 2 / analyses, degrees) * error for beyond in (0.05, 0.10)]
    return Interval(fmean(values), *halves)


def _squares(values: Sequence[float]) -> float:
    """The sum of squared deviations from the mean."""
    mean = fmean(values)
    return sum((value - mean) ** 2 for value in values)


def _joined(pair: Spread, common: Spread) -> Spread:
    """The variance of a pair, moderated by the common one: a few rounds do not determine a
    variance, but a noisy pair must not look as quiet as the others (G. K. Smyth, "Linear models and
    empirical Bayes methods", 2004)."""
    borrowed = min(BORROWED, common.degrees - pair.degrees)
    degrees = pair.degrees + borrowed
    squares = pair.degrees * pair.variance + borrowed * common.variance
    return Spread(squares / degrees, degrees)


def _p(mean: float, error: float, spread: Spread) -> float:
    """The two-sided p value."""
    if error == 0:
        return float(mean == 0)
    return 2 * t_cumulative(-abs(mean) / error, spread.degrees)
