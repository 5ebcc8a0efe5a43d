"""Why a quantile over all scheduled requests has no value: one decision for every place that would
print it. Pure.

*Not measured*, *too few requests*, *too few effective requests*, *only a lower bound* and
*infinite* are different facts with different remedies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.load_report import Bounds, LoadReport, Outcomes, QuantileUncertainty

# With fewer requests beyond a quantile, it is not even printed.
MIN_BEYOND = 10

Kind = Literal[
    "not_measured", "too_few_requests", "too_few_effective_requests", "lower_bound", "infinite"
]


@dataclass(frozen=True, slots=True)
class Absence:
    """Why a quantile has no value, with the numbers that decided it."""

    kind: Kind
    probability: float
    scheduled: int
    effective: float | None = None


def absence_of(result: LoadReport | CellResult, probability: float) -> Absence | None:
    """Why the quantile is absent; None if it has a value. Confidence intervals that are unbounded,
    because too few effective requests lie beyond the quantile, make it absent in the report of one
    load only: over runs, the variation between runs counts."""
    key, outcomes = f"{probability:g}", result.outcomes
    bounds = (result.offered_quantiles_ns or {}).get(key)
    known = result.uncertainty.offered_quantiles_ns.get(key) if result.uncertainty else None
    if outcomes is None or not outcomes.scheduled:
        return Absence("not_measured", probability, 0)

    kind: Kind | None = None
    if not enough_requests(outcomes.scheduled, probability):
        kind = "too_few_requests"
    elif bounds is None:
        kind = "not_measured"
    elif bounds.high is None:
        kind = "infinite" if is_infinite(bounds, probability, outcomes) else "lower_bound"
    elif isinstance(result, LoadReport) and has_few_effective(known):
        kind = "too_few_effective_requests"
    if kind is None:
        return None
    effective = None if known is None else known.effective_requests
    return Absence(kind, probability, outcomes.scheduled, effective)


def enough_requests(count: int | None, probability: float) -> bool:
    """Whether at least ten requests lie beyond the quantile."""
    return count is not None and count * (1 - probability) >= MIN_BEYOND - 1e-9


def min_requests(probability: float) -> int:
    """The number of requests of which ten lie beyond the quantile."""
    return round(MIN_BEYOND / (1 - probability))


def has_few_effective(known: QuantileUncertainty | None) -> bool:
    """Whether fewer than ten effective requests lie beyond the quantile: correlated requests carry
    less information."""
    return known is not None and known.reason == "too_few_effective_requests"


def is_infinite(bounds: Bounds, probability: float, outcomes: Outcomes | None) -> bool:
    """Whether a quantile without an upper bound has no bound at all.

    A request that timed out was slower than the timeout, which gives a lower bound. Other failed
    requests have no response time; if their share exceeds 1 - p, the quantile is infinite.
    """
    return bounds.low is None or _surely_failed(outcomes) > 1 - probability


def _surely_failed(outcomes: Outcomes | None) -> float:
    """The share of the scheduled requests that have no response time."""
    if outcomes is None or not outcomes.scheduled:
        return 0.0
    failed = (
        outcomes.http_status
        + outcomes.bad_body
        + outcomes.reset
        + outcomes.stale
        + outcomes.refused
        + outcomes.client_error
    )
    return failed / outcomes.scheduled
