"""A logarithmic axis of a chart that is part of a table, and so needs no script: positions in
percent of its width, and its ticks. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

_ZEROS = re.compile(r"\.0+(?!\d)|(\.\d*[1-9])0+(?!\d)")
_MAX_TICKS = 7
# Between ends with a smaller ratio, ticks are evenly spaced values instead of decades.
_LINEAR_RATIO = 6
# Smaller differences do not fill the axis.
_MIN_RATIO = 1.5


@dataclass(frozen=True, slots=True)
class Axis:
    """The ends of the axis."""

    low: float
    high: float

    def at(self, value: float) -> float:
        """The position of the value; a value beyond an end is at this end."""
        inside = min(max(value, self.low), self.high)
        return round(100 * math.log(inside / self.low) / math.log(self.high / self.low), 2)

    def ticks(self, form: Callable[[float], str]) -> list[tuple[float, str]]:
        """The positions of round values, with their text: 5 ms, not 5.00 ms."""
        values = self._linear() if self.high < _LINEAR_RATIO * self.low else self._decades()
        return [(self.at(one), _ZEROS.sub(r"\1", form(one))) for one in values]

    def _linear(self) -> list[float]:
        least = (self.high - self.low) / (_MAX_TICKS - 1)
        power = 10 ** math.floor(math.log10(least))
        step = power * next(one for one in (1, 2, 5, 10) if one * power >= least)
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        return [place * step for place in range(first, last + 1)]

    def _decades(self) -> list[float]:
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        inside: list[float] = []
        for factors in ((1, 2, 5), (1, 3), (1,)):
            values = (factor * 10.0**power for power in range(first, last) for factor in factors)
            inside = [value for value in values if self.low <= value <= self.high]
            if len(inside) <= _MAX_TICKS:
                return inside
        return inside[:: math.ceil(len(inside) / _MAX_TICKS)]


def axis_of(values: Iterable[float]) -> Axis | None:
    """An axis with all of these values; None without a positive one."""
    positive = [value for value in values if value > 0]
    if not positive:
        return None
    low, high = min(positive), max(positive)
    margin = max(1.08, math.sqrt(_MIN_RATIO * low / high))
    return Axis(low / margin, high * margin)
