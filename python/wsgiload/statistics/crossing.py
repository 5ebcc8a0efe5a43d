"""The rate at which the share of requests beyond a limit reaches what an objective allows. Pure.

A quantile meets a limit exactly if the share of requests beyond it is small enough. Unlike the
quantile, this share is unbiased however short a trial is, and counts of several trials add up. In a
queue it grows almost exponentially with the rate (in M/M/1, R exceeds x with probability
exp(-(μ-λ)x)), so the trials are fitted with a logistic curve in ln rate whose slope is expected to
be that of a queue. Requests come in clusters (busy periods), and launches differ: the scatter of
the trials around the curve sets the width of the interval. Decision 37 has the simulations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from wsgiload.statistics.effect import t_quantile

# From shares of the fewest trials, the scatter is underestimated.
MIN_TRIALS = 8
# The deviance at the lower and upper end of the interval, relative to the usual quantile. Clusters
# are skewed: most trials have fewer requests beyond the limit than in the long run. Found by
# simulation.
WIDENING = (2.8, 1.4)
# The standard deviation of the logarithm of the slope around that of an M/M/1 queue.
SLOPE_SPREAD = 0.35
_SLOPES = (math.log(1.5), math.log(150.0))
_MAX_LOAD = 0.97
# Shares below a 20th of the allowed one, or above it by a third of the rest, say little of the
# scatter near the capacity.
_LOWEST, _HIGHEST = 1 / 20, 1 / 3
_USUAL_SCATTER = 60.0
# The scatter of small shares, relative to that of the allowed one.
_LEAST_SCATTER = 0.15
_REACH = 0.7
_GOLDEN = (math.sqrt(5) - 1) / 2
_LEVEL = 0.975
_FITS = 4
# A trial this many deviations slower than usual, and at least twice as slow, is disturbed.
_DISTURBED, _LEAST_SLOWER = 3.0, math.log(2)
_MAD_TO_DEVIATION = 1.4826
_TINY = 0.1
# Fewer trials do not show what is usual.
_ENOUGH = 6


@dataclass(frozen=True, slots=True)
class Counted:
    """The requests of one trial, how many of them were beyond the limit, the share that the
    objective allows, and the figure divided by its limit."""

    rate_per_s: float
    requests: int
    beyond: int
    allowed: float
    excess: float

    @property
    def is_met(self) -> bool:
        """Whether the trial by itself meets the objective."""
        return self.beyond <= self.allowed * self.requests


@dataclass(frozen=True, slots=True)
class Crossing:
    """The rate, its 95 % interval, and the slope of ln share over ln rate there."""

    rate_per_s: float
    low_per_s: float
    high_per_s: float
    slope: float

    @property
    def width(self) -> float:
        """The larger distance of an end of the interval from the rate, relative to the rate."""
        return max(self.high_per_s / self.rate_per_s - 1, 1 - self.low_per_s / self.rate_per_s)


def crossing_of(trials: Sequence[Counted], saturation_per_s: float) -> Crossing | None:
    """The crossing; None unless some trials met the objective and some missed it.
    ``saturation_per_s`` is the throughput of a closed loop, from which the expected slope
    follows."""
    if len({one.is_met for one in trials}) < 2:
        return None
    crossing = _crossing_of(trials, saturation_per_s)
    usual = _usual(trials, crossing)
    if len(usual) == len(trials) or len({one.is_met for one in usual}) < 2:
        return crossing
    return _crossing_of(usual, saturation_per_s)


def _usual(trials: Sequence[Counted], crossing: Crossing) -> list[Counted]:
    """The trials without those that are far slower than the others let expect (a disturbed host).
    Logarithms of quantiles scatter evenly; counts of clusters do not."""
    if len(trials) < _ENOUGH:
        return list(trials)
    steepness = crossing.slope / -math.log(trials[0].allowed)
    slower = []
    for one in trials:
        spare = 1 - steepness * (one.rate_per_s / crossing.rate_per_s - 1)
        slower.append(math.log(max(_TINY, one.excess)) + math.log(max(_TINY, spare)))
    middle = median(slower)
    deviation = _MAD_TO_DEVIATION * median(abs(one - middle) for one in slower)
    limit = middle + max(_LEAST_SLOWER, _DISTURBED * deviation)
    return [one for one, value in zip(trials, slower, strict=True) if value <= limit]


def _crossing_of(trials: Sequence[Counted], saturation_per_s: float) -> Crossing:
    fit = _Fit(trials, math.log(saturation_per_s))
    places = [math.log(one.rate_per_s) for one in trials]
    ends = min(places) - _REACH, max(places) + _REACH
    place = 0.0
    for _ in range(_FITS):
        place = _lowest(fit.profile, *ends)
        fit.rescale(place)
    usual = t_quantile(_LEVEL, fit.degrees) ** 2
    low, high = (
        _where(fit.profile, place, end, fit.profile(place) + factor * usual)
        for end, factor in zip(ends, WIDENING, strict=True)
    )
    return Crossing(math.exp(place), math.exp(low), math.exp(high), math.exp(fit.slope_at(place)))


class _Fit:
    """The penalised deviance of a curve, divided by the scatter of the trials."""

    def __init__(self, trials: Sequence[Counted], saturation: float) -> None:
        self.trials, self.saturation = trials, saturation
        self.scatter, self.degrees = _USUAL_SCATTER, 1
        self._weigh([1.0] * len(trials))

    def _weigh(self, weights: Sequence[float]) -> None:
        self._terms = [
            (
                math.log(one.rate_per_s),
                math.log(one.allowed / (1 - one.allowed)),
                2 * weight * one.beyond,
                2 * weight * (one.requests - one.beyond),
            )
            for one, weight in zip(self.trials, weights, strict=True)
        ]

    def profile(self, place: float) -> float:
        """The lowest deviance of any slope if the crossing is at this ln rate."""
        return self._deviance(place, self.slope_at(place))

    def slope_at(self, place: float) -> float:
        """The logarithm of the most likely slope."""
        return _golden(lambda slope: self._deviance(place, slope), *_SLOPES, 0.02)

    def _deviance(self, place: float, log_slope: float) -> float:
        slope, total = math.exp(log_slope), 0.0
        for at, odds, beyond, within in self._terms:
            z = odds + slope * (at - place)
            if z > 0:
                rest = math.log1p(math.exp(-min(z, 700.0)))
                total += beyond * rest + within * (z + rest)
            else:
                rest = math.log1p(math.exp(max(z, -700.0)))
                total += beyond * (rest - z) + within * rest
        load = min(_MAX_LOAD, math.exp(place - self.saturation))
        odds = self._terms[0][1]
        expected = math.log(math.log1p(math.exp(-odds)) * load / (1 - load))
        return total / self.scatter + ((log_slope - expected) / SLOPE_SPREAD) ** 2

    def rescale(self, place: float) -> None:
        """Estimate the scatter (Pearson) around this curve. The more requests are beyond the limit,
        the larger are their clusters, so their scatter grows with their share."""
        slope, total, count, weights = math.exp(self.slope_at(place)), 0.0, 0, list[float]()
        for one, (at, odds, *_) in zip(self.trials, self._terms, strict=True):
            share = 1 / (1 + math.exp(-max(-700.0, min(700.0, odds + slope * (at - place)))))
            weights.append(1 / max(_LEAST_SCATTER, 1 / self.scatter, share / one.allowed))
            highest = one.allowed + _HIGHEST * (1 - one.allowed)
            if not one.allowed * _LOWEST < share < highest:
                continue
            expected = one.requests * share
            total += weights[-1] * (one.beyond - expected) ** 2 / max(expected, 0.2) / (1 - share)
            count += 1
        self.degrees = max(1, count - 2)
        usual = max(_USUAL_SCATTER, total)
        self.scatter = max(1.0, total / self.degrees if count > 2 else usual)
        self._weigh(weights)


def _lowest(function: Callable[[float], float], low: float, high: float) -> float:
    """The place of the lowest value, on a grid and then refined."""
    step = 0.04
    places = [low + step * count for count in range(int((high - low) / step) + 1)]
    best = min(places, key=function)
    return _golden(function, best - step, best + step, 0.0005)


def _golden(function: Callable[[float], float], low: float, high: float, precision: float) -> float:
    """The minimum of a function with one minimum (golden-section search)."""
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    while high - low > precision:
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = function(right)
    return (low + high) / 2


def _where(
    function: Callable[[float], float], inside: float, outside: float, allowed: float
) -> float:
    """Where the function exceeds ``allowed`` between the two; ``outside`` if nowhere."""
    if function(outside) <= allowed:
        return outside
    while abs(outside - inside) > 0.0005:
        middle = (inside + outside) / 2
        if function(middle) <= allowed:
            inside = middle
        else:
            outside = middle
    return outside
