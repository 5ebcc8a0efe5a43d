"""Differences between servers that are looked at after every round: a spread, an effect, and who is
ahead. Pure.

The error probability is spent in equal parts over the looks at a pair (K. K. G. Lan and D. L.
DeMets, "Discrete sequential boundaries for clinical trials", Biometrika 70(3), 1983, with
Bonferroni's bound over the looks), so that p values and intervals hold at whichever look the
measurement ends.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from wsgiload.statistics.effect import FEWEST_RUNS, Effect, Interval
from wsgiload.statistics.student import t_cumulative, t_quantile

# Logarithms of one round by server; infinite where the server failed, absent where nothing stands.
Round = Mapping[str, float]

# Rounds in common from which a deviation follows.
FEWEST_ROUNDS = 2
# The most degrees of freedom that the variance of a pair borrows from that of all pairs.
BORROWED = 10


@dataclass(frozen=True, slots=True)
class Spread:
    """The variance of a paired difference, and its degrees of freedom."""

    variance: float
    degrees: int


@dataclass(frozen=True, slots=True)
class Lead:
    """One server over another in the rounds they share, as logarithms; positive: it is faster."""

    mean: float
    rounds: int

    @property
    def total(self) -> float:
        """The sum over the rounds."""
        return self.mean * self.rounds


def lead_of(one: str, other: str, rounds: Sequence[Round]) -> Lead | None:
    """How far the first is ahead; None without a round in common."""
    values = differences(other, one, rounds)
    return Lead(fmean(values), len(values)) if values else None


def differences(one: str, other: str, rounds: Sequence[Round]) -> list[float]:
    """The first minus the second in every round in which both are known."""
    both = [(values.get(one, math.inf), values.get(other, math.inf)) for values in rounds]
    return [first - second for first, second in both if first < math.inf and second < math.inf]


def is_known(values: Round, name: str) -> bool:
    """Whether the server has a value in this round."""
    return math.isfinite(values.get(name, math.inf))


def spread_of(servers: Sequence[str], rounds: Sequence[Round]) -> Spread | None:
    """Common to all pairs of servers; None while no two of them share two rounds."""
    squares, pair_degrees = 0.0, 0
    for one, other in combinations(servers, 2):
        values = differences(one, other, rounds)
        if len(values) >= FEWEST_ROUNDS:
            squares += _squares(values)
            pair_degrees += len(values) - 1
    if not pair_degrees:
        return None

    # The residuals of servers and rounds, of which the pairs hold each one several times.
    blocks = [[name for name in servers if is_known(one, name)] for one in rounds]
    shared = [names for names in blocks if len(names) > 1]
    measured = {name for names in shared for name in names}
    degrees = sum(map(len, shared)) - len(shared) - len(measured) + 1
    return Spread(squares / pair_degrees, max(1, degrees))


def sequential_effect(values: Sequence[float], spread: Spread, analyses: float) -> Effect | None:
    """Of differences within rounds, of which there may be further ones: an effect whose p and
    interval hold at each of so many looks. None before the first look, at four rounds."""
    if len(values) < FEWEST_RUNS:
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
    """The mean of rounds of which there may be further ones, with intervals that hold at each of so
    many looks. None before the first look, at four rounds."""
    if len(values) < FEWEST_RUNS:
        return None
    degrees = len(values) - 1
    error = math.sqrt(_squares(values) / degrees / len(values))
    halves = [t_quantile(1 - beyond / 2 / analyses, degrees) * error for beyond in (0.05, 0.10)]
    return Interval(fmean(values), *halves)


def _squares(values: Sequence[float]) -> float:
    """Of the distances from their mean."""
    mean = fmean(values)
    return sum((value - mean) ** 2 for value in values)


def _joined(pair: Spread, common: Spread) -> Spread:
    """A few rounds tell too little of one variance; a noisy server must not borrow all calm of
    others (G. K. Smyth, "Linear models and empirical Bayes methods", 2004)."""
    borrowed = min(BORROWED, common.degrees - pair.degrees)
    degrees = pair.degrees + borrowed
    squares = pair.degrees * pair.variance + borrowed * common.variance
    return Spread(squares / degrees, degrees)


def _p(mean: float, error: float, spread: Spread) -> float:
    """Two-sided."""
    if error == 0:
        return float(mean == 0)
    return 2 * t_cumulative(-abs(mean) / error, spread.degrees)
