"""Thresholds such as ``p99<50ms``, evaluated on results. Pure."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wsgiload.analysis.absence import min_requests
from wsgiload.analysis.attempts import delay_of, delay_words
from wsgiload.documents.capacity import ServerCapacity
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.load_report import LoadReport, Rates
from wsgiload.errors import UsageError
from wsgiload.units import parse_duration_ns

Measured = LoadReport | CellResult

_FORM = re.compile(r"\s*([a-z_0-9.]+)\s*(<=|>=|<|>)\s*(.+?)\s*")
# k6 writes p(99)<50 (milliseconds) and http_req_failed: rate<0.01 (a share).
_OF_K6 = re.compile(
    r"\s*(?P<metric>http_req_\w+)?[\s:]*(?P<figure>p\([\d.]+\)|avg|min|med|max|rate)?"
    r"\s*(?P<comparison><=|>=|<|>)\s*(?P<limit>[\d.]+)(?P<unit>ms|s|%)?\s*"
)
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
MAX_CHANCE = 0.05
# The figures of a load, and those of a capacity search.
LOAD_FIGURES = (*QUANTILES, "error_rate", "goodput")
CAPACITY_FIGURES = ("capacity",)
_EXAMPLES = {
    LOAD_FIGURES: "'p99<50ms', 'error_rate<0.1%' or 'goodput>=1000'",
    CAPACITY_FIGURES: "'capacity>=1000'",
}


@dataclass(frozen=True, slots=True)
class Threshold:
    """A figure, a comparison and a limit (nanoseconds, share, or requests per second)."""

    text: str
    figure: str
    comparison: str
    limit: float

    def holds(self, result: Measured | ServerCapacity) -> bool:
        """Whether a load report, a cell of a sweep or a capacity meets it; an unknown figure does
        not."""
        value = _value(self.figure, result)
        return value is not None and _COMPARE[self.comparison](value, self.limit)

    def excess(self, result: Measured) -> float:
        """The figure divided by its upper limit; infinite if it is unknown."""
        value = _value(self.figure, result)
        if value is None:
            return math.inf
        return value / self.limit if self.limit else math.inf if value else 0.0

    @property
    def requests_needed(self) -> int:
        """The number of requests needed to judge the quantile; 0 for other figures."""
        quantile = QUANTILES.get(self.figure)
        return 0 if quantile is None else min_requests(float(quantile))

    def is_decided(self, result: Measured | ServerCapacity) -> bool:
        """Whether the result is conclusive: there are enough requests, or the result is clear with
        fewer (a lower quantile already misses the limit, or every request meets it), and the
        generator's delay does not explain a miss."""
        if isinstance(result, ServerCapacity):
            return not self._is_inside(result.interval_95)
        if self.missed_by_delay_ns(result):
            return False
        requests = _scheduled(result)
        is_enough = requests == 0 or requests >= self.requests_needed
        return is_enough or self._is_missed_below(result) or self._is_met_by_all(result)

    def _is_inside(self, interval: tuple[float | None, float | None] | None) -> bool:
        """Whether the limit lies within the interval of a capacity."""
        low, high = interval or (None, None)
        return low is not None and low < self.limit and (high is None or self.limit < high)

    def missed_by_delay_ns(self, result: Measured | ServerCapacity) -> int:
        """Nanoseconds that the generator may have added to the quantile if they explain the miss;
        otherwise 0."""
        if isinstance(result, ServerCapacity) or self.comparison not in ("<", "<="):
            return 0
        value, quantile = _value(self.figure, result), QUANTILES.get(self.figure)
        if value is None or quantile is None or self.holds(result):
            return 0
        delay_ns = delay_of(result.error_budget_ns, quantile)
        return delay_ns if _COMPARE[self.comparison](value - delay_ns, self.limit) else 0

    def _is_met_by_all(self, result: Measured | ServerCapacity) -> bool:
        """Whether all requests are within the limit, and too many for this to be chance: if the
        true quantile q exceeded the limit, n requests would all be within it with probability
        q^n."""
        if isinstance(result, ServerCapacity) or self.comparison not in ("<", "<="):
            return False

        times, outcomes = result.response_time_ns, result.outcomes
        if times is None or times.max is None or outcomes is None:
            return False
        is_within = outcomes.ok == outcomes.scheduled
        is_within &= _COMPARE[self.comparison](times.max, self.limit)
        chance = float(QUANTILES[self.figure]) ** outcomes.scheduled
        return is_within and chance <= MAX_CHANCE

    def _is_missed_below(self, result: Measured | ServerCapacity) -> bool:
        """Whether a lower quantile already misses the limit."""
        if isinstance(result, ServerCapacity) or self.comparison not in ("<", "<="):
            return False

        requests = _scheduled(result)
        below = [
            bounds.low
            for quantile, bounds in (result.offered_quantiles_ns or {}).items()
            if float(quantile) < float(QUANTILES[self.figure])
            and requests >= min_requests(float(quantile))
        ]
        # If more requests failed than a quantile allows, it has no bound.
        return any(low is None or not _COMPARE[self.comparison](low, self.limit) for low in below)


def parse_threshold(text: str, figures: tuple[str, ...] = LOAD_FIGURES) -> Threshold:
    """A threshold on ``p50…p99.99`` (response time over all offered requests), ``error_rate`` or
    ``goodput``; for a capacity search, on ``capacity`` (requests per second)."""
    fix = f"write it like {_EXAMPLES[figures]}"
    _require_own_form(text)
    match = _FORM.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is not a threshold", fix)

    figure, comparison, limit = match.groups()
    if figure not in figures:
        raise UsageError(
            f"{text!r}: unknown figure {figure!r}", f"choose one of {', '.join(figures)}"
        )
    _require_unit(text, figure, comparison, limit)
    if figure in QUANTILES:
        return Threshold(text, figure, comparison, parse_duration_ns(limit))

    is_share = limit.endswith("%")
    if is_share and figure != "error_rate":
        raise UsageError(
            f"{text!r}: {figure} is a rate per second, not a percentage",
            "for a percentage write error_rate<5%",
        )
    try:
        number = float(limit.removesuffix("%"))
    except ValueError:
        raise UsageError(f"{text!r}: {limit!r} is not a number", fix) from None
    if not (math.isfinite(number) and number >= 0):
        raise UsageError(f"{text!r}: {limit!r} is not a finite number", fix)
    return Threshold(text, figure, comparison, number * (0.01 if is_share else 1.0))


def _require_unit(text: str, figure: str, comparison: str, limit: str) -> None:
    """A number without a unit has two readings."""
    number = _number(limit)
    if number is None or number == 0:
        return
    if figure in QUANTILES:
        readings = (f"{limit}ms", f"{limit}s")
    elif figure == "error_rate":
        readings = (f"{limit}%", f"{number * 100:g}%")
    else:
        return
    ours = [f"'{figure}{comparison}{reading}'" for reading in readings]
    raise UsageError(
        f"{text!r} has no unit: it may mean {readings[0]} or {readings[1]}",
        f"write {ours[0]} or {ours[1]}",
    )


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number > 0 else None


def _require_own_form(text: str) -> None:
    """Translate a threshold of k6."""
    match = _OF_K6.fullmatch(text)
    if match is None or not (match["metric"] or match["figure"]):
        return

    figure, comparison, limit, unit = match.group("figure", "comparison", "limit", "unit")
    number = _number(limit) or 0.0
    if match["metric"] == "http_req_failed" or figure == "rate":
        share = f"{limit}%" if unit == "%" else f"{number * 100:g}%"
        raise UsageError(f"{text!r} is a threshold of k6", f"write 'error_rate{comparison}{share}'")

    duration = f"{limit}{unit or 'ms'}"
    quantile = "p50" if figure == "med" else (figure or "").replace("(", "").replace(")", "")
    if quantile in QUANTILES:
        raise UsageError(
            f"{text!r} is a threshold of k6", f"write '{quantile}{comparison}{duration}'"
        )
    raise UsageError(
        f"{text!r} is a threshold of k6 on a figure that wsgiload does not judge",
        f"choose one of {', '.join(QUANTILES)}, such as 'p50{comparison}{duration}'",
    )


def _value(figure: str, result: Measured | ServerCapacity) -> float | None:
    """The figure; a quantile counts with its upper bound, and an open bound is not met."""
    if isinstance(result, ServerCapacity):
        return result.rate_per_s if figure in CAPACITY_FIGURES else None
    if figure in QUANTILES:
        bounds = (result.offered_quantiles_ns or {}).get(QUANTILES[figure])
        return None if bounds is None else bounds.high
    if figure == "goodput":
        rates = _rates(result)
        return None if rates is None else rates.goodput_per_s
    return _error_rate(result) if figure == "error_rate" else None


def _scheduled(result: Measured | ServerCapacity) -> int:
    outcomes = None if isinstance(result, ServerCapacity) else result.outcomes
    return 0 if outcomes is None else outcomes.scheduled


def _rates(result: Measured) -> Rates | None:
    return result.rate_result if isinstance(result, CellResult) else result.rate


def _error_rate(result: Measured) -> float | None:
    outcomes = result.outcomes
    if outcomes is None or not outcomes.scheduled:
        return None
    return (outcomes.scheduled - outcomes.ok) / outcomes.scheduled


def failed_thresholds(
    thresholds: Sequence[Threshold], results: Sequence[tuple[str, Measured | ServerCapacity]]
) -> list[str]:
    """A sentence for each threshold that a named result certainly misses."""
    return [
        f"threshold {threshold.text} failed{f' for {name}' if name else ''}"
        for name, result in results
        for threshold in thresholds
        if threshold.is_decided(result) and not threshold.holds(result)
    ]


def undecided_thresholds(
    thresholds: Sequence[Threshold], results: Sequence[tuple[str, Measured | ServerCapacity]]
) -> list[str]:
    """A sentence for each threshold for which a named result is inconclusive."""
    return [
        f"threshold {threshold.text} undecided{f' for {name}' if name else ''}: "
        f"{_why_undecided(threshold, result)}"
        for name, result in results
        for threshold in thresholds
        if not threshold.is_decided(result)
    ]


def _why_undecided(threshold: Threshold, result: Measured | ServerCapacity) -> str:
    if isinstance(result, ServerCapacity):
        return "the 95 % confidence interval contains it. Use a longer --budget"
    if delay_ns := threshold.missed_by_delay_ns(result):
        return f"{delay_words(threshold.figure, delay_ns)}. Repeat on an idle machine"
    return (
        f"{threshold.figure} needs {threshold.requests_needed:,} requests, but only "
        f"{_scheduled(result):,} were scheduled. Measure longer, or choose a lower quantile"
    )
