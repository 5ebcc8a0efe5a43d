"""The rate at which half of the trials meet an objective, with its interval: a logistic curve in ln rate. Pure."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

# How gently the curve may fall, as the standard deviation of ln rate. A steeper one than the first is not resolved by
# a search of 2 % width, and a gentler one than the last tells nothing.
_SPREADS = tuple(0.004 * 1.7**step for step in range(9))
RESAMPLES = 200
LEVEL = 0.95
# A search goes where trials passed and missed by turns, which the bootstrap cannot know: its interval covers 83 to 90 %
# of the truth on the noisy oracle of the tests instead of 95 %, and so much wider 93 to 95 %.
WIDENED = 1.6

Outcome = tuple[float, bool]  # rate per second, passed
Point = tuple[float, int, int]  # ln rate, passed, failed


@dataclass(frozen=True, slots=True)
class Threshold:
    """The fitted rate per second, and its 95 % interval."""

    rate_per_s: float
    low_per_s: float
    high_per_s: float


def fit_rate(trials: Sequence[Outcome]) -> float | None:
    """The rate at the middle of the likeliest curve; None unless some trials passed and some failed."""
    return math.exp(_fit(_points(trials))) if _has_both(trials) else None


def fit_threshold(trials: Sequence[Outcome], seed: int = 1) -> Threshold | None:
    """The same with an interval, by a bootstrap over the trials."""
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
    low, high = (WIDENED * (drawn[place] - centre) for place in (outside, -1 - outside))
    return Threshold(math.exp(centre), math.exp(centre + min(low, 0.0)), math.exp(centre + max(high, 0.0)))


def _has_both(trials: Sequence[Outcome]) -> bool:
    return len({passed for _, passed in trials}) == 2


def _points(trials: Sequence[Outcome]) -> list[Point]:
    counts: dict[float, list[int]] = {}
    for rate, passed in trials:
        counts.setdefault(math.log(rate), [0, 0])[0 if passed else 1] += 1
    return [(place, passed, failed) for place, (passed, failed) in sorted(counts.items())]


def _fit(points: Sequence[Point]) -> float:
    """The ln rate at which the likeliest curve crosses one half."""
    fits = [
        (_likelihood(points, centre, spread), centre) for spread in _SPREADS for centre in [_centre(points, spread)]
    ]
    return max(fits)[1]


def _centre(points: Sequence[Point], spread: float) -> float:
    """For one spread the likelihood has one maximum, where its slope crosses 0."""
    low, high = points[0][0], points[-1][0]
    for _ in range(16):
        centre = (low + high) / 2
        slope = sum(failed - (passed + failed) * _missed((place - centre) / spread) for place, passed, failed in points)
        # More misses than the curve expects: it must fall earlier.
        low, high = (low, centre) if slope > 0 else (centre, high)
    return (low + high) / 2


def _missed(distance: float) -> float:
    return 1 / (1 + math.exp(-max(-700.0, min(700.0, distance))))


def _likelihood(points: Sequence[Point], centre: float, spread: float) -> float:
    total = 0.0
    for place, passed, failed in points:
        distance = (place - centre) / spread
        total -= passed * _softplus(distance) + failed * _softplus(-distance)
    return total


def _softplus(value: float) -> float:
    return value + math.log1p(math.exp(-value)) if value > 0 else math.log1p(math.exp(value))
