"""Quantiles of Student's t distribution. Pure.

The distribution function uses the incomplete beta function (Abramowitz and Stegun, Handbook of
Mathematical Functions, 26.5.8 as a continued fraction, 26.7.1); its inverse uses bisection. A
report needs only a few calls, so accuracy matters more than speed.
"""

from __future__ import annotations

import math
from functools import cache

_TINY = 1e-300
_PRECISION = 1e-15
_MAX_TERMS = 10_000


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
