"""How precisely one run knows a quantile, and how long it has to be to reach a target precision.
Pure.

The width of the interval inside a run shrinks with the square root of its length
(docs/statistics.md), because the number of effective requests grows with it.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from wsgiload.documents.load_plan import PrecisionTarget
from wsgiload.documents.load_report import LoadReport
from wsgiload.errors import UsageError
from wsgiload.units import NS_PER_S

# Those that a report has intervals of.
QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999, "p99.99": 0.9999}
USUAL_QUANTILE = "p99"
# What a quantile needs before it has an interval at all.
FEWEST_REQUESTS, FEWEST_BEYOND = 300, 10
WIDEST = 0.5

_FORM = re.compile(r"(?:(?P<quantile>p[0-9.]+):)?(?P<percent>[0-9.]+)%")
_HOPELESS = {
    "not_met": "more requests failed than it leaves room for",
    "measurement_floor": "it is too close to the noise floor",
    "interrupted": "the load was interrupted",
}


@dataclass(frozen=True, slots=True)
class Precision:
    """A quantile, and the half-width of its 95 % interval as a share of it."""

    share: float
    name: str = USUAL_QUANTILE


def parse_precision(text: str) -> Precision:
    """``5%`` of p99, or ``p99.9:2%``."""
    match = _FORM.fullmatch(text.strip())
    fix = "write it like 5% or p99.9:2%"
    if match is None:
        raise UsageError(f"{text!r} is not a precision", fix)
    name = match["quantile"] or USUAL_QUANTILE
    if name not in QUANTILES:
        raise UsageError(
            f"{text!r}: {name} has no interval", f"choose one of {', '.join(QUANTILES)}"
        )
    try:
        share = float(match["percent"]) / 100
    except ValueError:
        raise UsageError(f"{text!r} is not a precision", fix) from None
    if not 0 < share <= WIDEST:
        raise UsageError(f"{text!r}: {share:.3g} does not lie above 0 and up to {WIDEST:.0%}", fix)
    return Precision(share, name)


def until_precise(wanted: Precision | None, longest_ns: int | None) -> PrecisionTarget | None:
    """What a plan holds for its load to continue until the quantile is known well enough; None
    without a longest duration."""
    if longest_ns is None:
        return None
    if wanted is None:
        raise UsageError("--max-duration needs --precision", "add --precision p99:5%")
    return PrecisionTarget(
        quantile=QUANTILES[wanted.name], share=wanted.share, longest_ns=longest_ns
    )


def precision_sentence(load: LoadReport, wanted: Precision) -> str:
    """Whether the load reached the precision, and if not, how long it would take."""
    probability = QUANTILES[wanted.name]
    known = load.uncertainty.offered_quantiles_ns.get(f"{probability:g}")
    if known is None or not load.outcomes.scheduled:
        return f"precision of {wanted.name} not reached: nothing was scheduled"
    if known.reason in _HOPELESS:
        return (
            f"precision of {wanted.name} not reached: {_HOPELESS[known.reason]}; a longer load "
            "does not help"
        )

    half = half_width(load, f"{probability:g}")
    effective = known.effective_requests
    if half is None or effective is None:
        least_ns = load.measured_ns * _times_for_an_interval(load, probability, effective)
        return (
            f"precision of {wanted.name} not reached: an interval needs at least "
            f"{_duration(least_ns)}"
        )

    reached = f"{wanted.name} ± {half:.1%} (from {effective:,.0f} effective requests)"
    if half <= wanted.share:
        return reached
    needed_ns = load.measured_ns * (half / wanted.share) ** 2
    missed = f"{reached}; ± {wanted.share:.1%} needs about {_duration(needed_ns)}"
    if load.precision is not None:
        return f"precision of {wanted.name} not reached: {missed} (--max-duration)"
    return f"{missed} (--duration)"


def half_width(load: LoadReport, quantile: str) -> float | None:
    """Half of the 95 % interval of an offered quantile as a share of it; None where it has none, or
    an open one."""
    bounds = (load.offered_quantiles_ns or {})[quantile]
    low_high = load.uncertainty.offered_quantiles_ns[quantile].interval_95_ns
    if low_high is None or not bounds.high:
        return None
    low_ns, high_ns = low_high
    return None if high_ns is None else (high_ns - low_ns) / 2 / bounds.high


def _times_for_an_interval(load: LoadReport, probability: float, effective: float | None) -> float:
    """How many times as long a load would have to be for ten effective requests beyond the
    quantile."""
    needed = FEWEST_BEYOND / (1 - probability)
    if effective:
        return max(1.0, needed / effective)
    return max(1.0, max(FEWEST_REQUESTS, needed) / load.outcomes.scheduled)


def _duration(length_ns: float) -> str:
    seconds = length_ns / NS_PER_S
    return f"{math.ceil(seconds)} s" if seconds < 120 else f"{math.ceil(seconds / 60)} min"
