"""Fits a logistic curve in ln rate: the rate at which half of the trials meet the objective, with
its confidence interval. Pure."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

# Candidate slopes, as the standard deviation of ln rate. A search with a width of 2 % cannot
# resolve a steeper curve than the first, and a flatter curve than the last carries no information.
_SPREADS = tuple(0.004 * 1.7**step for step in range(9))
# The share of trials that miss although the server could have met the objective, because of a
# disturbance. Without this lapse rate (Wichmann and Hill, Perception & Psychophysics 63, 2001), one
# miss far below capacity would bend the whole curve. If 4 % of the trials in the tests' noisy
# oracle are such misses, 94 and 100 % of the estimates are within 4 % of the truth, instead of 87
# and 90 %. Without such misses, the share is the same with and without the lapse rate.
LAPSE = 0.03
# The likelihood is evaluated on a grid and then refined to this resolution in ln rate.
_GRID_STEPS = 24
_RESOLUTION = 0.0005
_MAX_DISTANCE = 700.0  # above this, exp() overflows
RESAMPLES = 200
LEVEL = 0.95
# A search chooses its next rate from the outcomes of earlier trials, which the bootstrap ignores.
# On the tests' noisy oracle, its 95 % interval therefore covers the truth in 83 to 90 % of the
# searches; widened by this factor, in 93 to 95 %.
WIDENING = 1.6

Outcome = tuple[float, bool]  # rate per second, passed
Point = tuple[float, int, int]  # ln rate, passed, failed


@dataclass(frozen=True, slots=True)
class FittedRate:
    """The fitted rate per second with its 95 % confidence interval."""

    rate_per_s: float
    low_per_s: float
    high_per_s: float


def fit_rate(trials: Sequence[Outcome]) -> float | None:
    """The rate at which the most likely curve crosses one half; None unless some trials passed and
    some failed."""
    return math.exp(_fit(_points(trials))) if _has_both(trials) else None


def fit_threshold(trials: Sequence[Outcome], seed: int = 1) -> FittedRate | None:
    """The fitted rate with a bootstrap confidence interval over the trials; None unless some trials
    passed and some failed."""
    if not _has_both(trials):
        return None
    centre = _fit(_points(trials))
    generator = random.Random(seed)
    drawn: list[float] = []
    while len(drawn) < RESAMPLES:
        sample = generator.choices(trials, k=len(trials))
        if _has_both(sample):
            drawn.append(_fit(_points(sample)))
    drawn.sort()
    outside = round((1 - LEVEL) / 2 * RESAMPLES)
    low, high = (WIDENING * (drawn[place] - centre) for place in (outside, -1 - outside))
    return FittedRate(
        math.exp(centre), math.exp(centre + min(low, 0.0)), math.exp(centre + max(high, 0.0))
    )


def _has_both(trials: Sequence[Outcome]) -> bool:
    return len({passed for _, passed in trials}) == 2


def _points(trials: Sequence[Outcome]) -> list[Point]:
    counts: dict[float, list[int]] = {}
    for rate, passed in trials:
        counts.setdefault(math.log(rate), [0, 0])[0 if passed else 1] += 1
    return [(place, passed, failed) for place, (passed, failed) in sorted(counts.items())]


def _fit(points: Sequence[Point]) -> float:
    """The ln rate at which the most likely curve crosses one half."""
    return max(_best_centre(points, spread) for spread in _SPREADS)[1]


def _best_centre(points: Sequence[Point], spread: float) -> tuple[float, float]:
    """The largest likelihood for this spread and its location. There may be several maxima; this is
    the highest."""
    first, step = points[0][0], (points[-1][0] - points[0][0]) / _GRID_STEPS
    likelihoods = [
        _likelihood(points, first + place * step, spread) for place in range(_GRID_STEPS + 1)
    ]
    best = likelihoods.index(max(likelihoods))
    low, high = first + max(best - 1, 0) * step, first + min(best + 1, _GRID_STEPS) * step
    while high - low > _RESOLUTION:
        third = (high - low) / 3
        is_above = _likelihood(points, low + third, spread) < _likelihood(
            points, high - third, spread
        )
        low, high = (low + third, high) if is_above else (low, high - third)
    centre = (low + high) / 2
    return _likelihood(points, centre, spread), centre


def _likelihood(points: Sequence[Point], centre: float, spread: float) -> float:
    total = 0.0
    for place, passed, failed in points:
        distance = max(-_MAX_DISTANCE, min(_MAX_DISTANCE, (place - centre) / spread))
        passes = (1 - LAPSE) / (1 + math.exp(distance))
        total += passed * math.log(passes) + failed * math.log1p(-passes)
    return total
