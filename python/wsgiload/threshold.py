"""Objectives of the form ``p99<50ms``, judged on results. Pure."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wsgiload.errors import UsageError
from wsgiload.units import parse_duration_ns

Json = dict[str, Any]

_FORM = re.compile(r"\s*([a-z_0-9.]+)\s*(<=|>=|<|>)\s*(.+?)\s*")
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_QUANTILES = {"p50": "0.5", "p90": "0.9", "p95": "0.95", "p99": "0.99", "p99.9": "0.999", "p99.99": "0.9999"}
_CURE = "write it like 'p99<50ms', 'error_rate<0.1%' or 'goodput>=1000'"


@dataclass(frozen=True, slots=True)
class Threshold:
    """One objective: a figure, a comparison, a limit (nanoseconds, share, or requests per second)."""

    text: str
    figure: str
    comparison: str
    limit: float

    def holds(self, result: Json) -> bool:
        """Whether a load report or a cell of a sweep meets it; a figure that is not known does not."""
        value = _value(self.figure, result)
        return value is not None and _COMPARE[self.comparison](value, self.limit)


def parse_threshold(text: str) -> Threshold:
    """``p50…p99.99`` (response time over all offered requests), ``error_rate``, ``goodput``."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is not a threshold", _CURE)
    figure, comparison, limit = match.groups()
    if figure in _QUANTILES:
        return Threshold(text, figure, comparison, parse_duration_ns(limit))
    if figure in ("error_rate", "goodput"):
        scale = 0.01 if limit.endswith("%") and figure == "error_rate" else 1.0
        try:
            return Threshold(text, figure, comparison, float(limit.removesuffix("%")) * scale)
        except ValueError:
            raise UsageError(f"{text!r}: {limit!r} is not a number", _CURE) from None
    known = ", ".join([*_QUANTILES, "error_rate", "goodput"])
    raise UsageError(f"{text!r}: there is no figure {figure!r}", f"choose one of {known}")


def _value(figure: str, result: Json) -> float | None:
    """The figure; a quantile counts by its upper bound, because a bound that is open is not met."""
    if figure in _QUANTILES:
        bounds = (result.get("offered_quantiles_ns") or {}).get(_QUANTILES[figure])
        return None if bounds is None else bounds["high"]
    if figure == "goodput":
        rate = result.get("rate_result") or result.get("rate")
        return None if rate is None else rate["goodput_per_s"]
    outcomes = result.get("outcomes")
    if not outcomes or not outcomes["scheduled"]:
        return None
    return float((outcomes["scheduled"] - outcomes["ok"]) / outcomes["scheduled"])


def failed_thresholds(thresholds: list[Threshold], results: list[tuple[str, Json]]) -> list[str]:
    """A sentence for each threshold that a named result does not meet."""
    return [
        f"threshold {threshold.text} failed{f' by {name}' if name else ''}"
        for name, result in results
        for threshold in thresholds
        if not threshold.holds(result)
    ]
