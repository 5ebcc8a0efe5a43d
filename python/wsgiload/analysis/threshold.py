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
QUANTILES = {
    "p50": "0.5",
    "p90": "0.9",
    "p95": "0.95",
    "p99": "0.99",
    "p99.9": "0.999",
    "p99.99": "0.9999",
}
# What is told of a load, and what is told of a search.
LOAD_FIGURES = (*QUANTILES, "error_rate", "goodput")
CAPACITY_FIGURES = ("capacity",)
_EXAMPLES = {
    LOAD_FIGURES: "'p99<50ms', 'error_rate<0.1%' or 'goodput>=1000'",
    CAPACITY_FIGURES: "'capacity>=1000'",
}


@dataclass(frozen=True, slots=True)
class Threshold:
    """One objective: a figure, a comparison, a limit (nanoseconds, share, or requests per
    second)."""

    text: str
    figure: str
    comparison: str
    limit: float

    def holds(self, result: Json) -> bool:
        """Whether a load report, a cell of a sweep or a capacity meets it; a figure that is not
        known does not."""
        value = _value(self.figure, result)
        return value is not None and _COMPARE[self.comparison](value, self.limit)


def parse_threshold(text: str, figures: tuple[str, ...] = LOAD_FIGURES) -> Threshold:
    """``p50…p99.99`` (response time over all offered requests), ``error_rate``, ``goodput``; of a
    search ``capacity``, the rate per second that it found."""
    fix = f"write it like {_EXAMPLES[figures]}"
    match = _FORM.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is not a threshold", fix)
    figure, comparison, limit = match.groups()
    if figure not in figures:
        raise UsageError(
            f"{text!r}: unknown figure {figure!r}", f"choose one of {', '.join(figures)}"
        )
    if figure in QUANTILES:
        return Threshold(text, figure, comparison, parse_duration_ns(limit))
    is_share = limit.endswith("%")
    if is_share and figure != "error_rate":
        raise UsageError(
            f"{text!r}: {figure} is a rate per second and no share",
            "for a share write error_rate<5%",
        )
    try:
        return Threshold(
            text, figure, comparison, float(limit.removesuffix("%")) * (0.01 if is_share else 1.0)
        )
    except ValueError:
        raise UsageError(f"{text!r}: {limit!r} is not a number", fix) from None


def _value(figure: str, result: Json) -> float | None:
    """The figure; a quantile counts by its upper bound, because a bound that is open is not met."""
    if figure in QUANTILES:
        bounds = (result.get("offered_quantiles_ns") or {}).get(QUANTILES[figure])
        return None if bounds is None else bounds["high"]
    if figure == "capacity":
        found: float | None = result["rate_per_s"]
        return found
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
