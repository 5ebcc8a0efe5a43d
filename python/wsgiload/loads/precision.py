"""The precision of a quantile within one run, and the run length that a requested precision needs.
Pure.

The width of the interval within a run decreases with the square root of the run's length
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

# The quantiles for which a report has intervals.
QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999, "p99.99": 0.9999}
DEFAULT_QUANTILE = "p99"
# The minimum for an interval of a quantile.
MIN_REQUESTS, MIN_BEYOND = 300, 10
MAX_HALF_WIDTH = 0.5

_PATTERN = re.compile(r"(?:(?P<quantile>p[0-9.]+):)?(?P<percent>[0-9.]+)%")
_UNREACHABLE = {
    "not_met": "too many requests failed",
    "below_noise_floor": "it is too close to the noise floor",
    "interrupted": "the load was interrupted",
}


@dataclass(frozen=True, slots=True)
class Precision:
    """A quantile, and the relative half-width of its 95 % interval."""

    share: float
    name: str = DEFAULT_QUANTILE


def parse_precision(text: str) -> Precision:
    """``5%`` of p99, or ``p99.9:2%``."""
    match = _PATTERN.fullmatch(text.strip())
    fix = "write it like 5% or p99.9:2%"
    if match is None:
        raise UsageError(f"{text!r} is not a precision", fix)
    name = match["quantile"] or DEFAULT_QUANTILE
    if name not in QUANTILES:
        raise UsageError(
            f"{text!r}: {name} has no confidence interval", f"choose one of {', '.join(QUANTILES)}"
        )
    try:
        share = float(match["percent"]) / 100
    except ValueError:
        raise UsageError(f"{text!r} is not a precision", fix) from None
    if not 0 < share <= MAX_HALF_WIDTH:
        raise UsageError(
            f"{text!r}: the precision must be above 0% and at most {MAX_HALF_WIDTH:.0%}", fix
        )
    return Precision(share, name)


def until_precise(
    precision: Precision | None, max_duration_ns: int | None
) -> PrecisionTarget | None:
    """The plan's precision target, which extends the load until the precision is reached; None
    without a maximum duration."""
    if max_duration_ns is None:
        return None
    if precision is None:
        raise UsageError("--max-duration needs --precision", "add --precision p99:5%")
    quantile = QUANTILES[precision.name]
    return PrecisionTarget(
        quantile=quantile, half_width=precision.share, max_duration_ns=max_duration_ns
    )


def precision_sentence(load: LoadReport, target: Precision) -> str:
    """Whether the load reached the requested precision; if not, how long it would take."""
    probability = QUANTILES[target.name]
    missed = f"precision of {target.name} not reached"
    uncertainty = load.uncertainty.offered_quantiles_ns.get(f"{probability:g}")
    if uncertainty is None or not load.outcomes.scheduled:
        return f"{missed}: nothing was scheduled"
    if uncertainty.reason in _UNREACHABLE:
        return f"{missed}: {_UNREACHABLE[uncertainty.reason]}; a longer measurement does not help"

    half = half_width(load, f"{probability:g}")
    effective = uncertainty.effective_requests
    if half is None:
        min_ns = load.measured_ns * _extension_factor(load, probability, effective)
        return f"{missed}: a confidence interval needs at least {_duration(min_ns)}"

    reached = f"{target.name} is known to ± {_percent(half)}"
    if effective is not None:
        reached += f" ({effective:,.0f} effective requests)"
    if half <= target.share:
        return reached
    needed_ns = load.measured_ns * (half / target.share) ** 2
    suggestion = f"{reached}; ± {_percent(target.share)} needs about {_duration(needed_ns)}"
    if load.precision is not None:
        return f"{missed}: {suggestion} (--max-duration)"
    return f"{suggestion} (--duration)"


def half_width(load: LoadReport, quantile: str) -> float | None:
    """The relative half-width of the 95 % interval of an offered quantile; None without a closed
    interval."""
    interval_ns = load.uncertainty.offered_quantiles_ns[quantile].interval_95_ns
    bounds = (load.offered_quantiles_ns or {}).get(quantile)
    if interval_ns is None or bounds is None or not bounds.high:
        return None
    low_ns, high_ns = interval_ns
    return None if high_ns is None else (high_ns - low_ns) / 2 / bounds.high


def _extension_factor(load: LoadReport, probability: float, effective: float | None) -> float:
    """The factor by which a load must be extended to have enough requests for an interval of
    the quantile."""
    needed = MIN_BEYOND / (1 - probability)
    if effective:
        return max(1.0, needed / effective)
    return max(1.0, max(MIN_REQUESTS, needed) / load.outcomes.scheduled)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _duration(length_ns: float) -> str:
    seconds = length_ns / NS_PER_S
    return f"{math.ceil(seconds)} s" if seconds < 120 else f"{math.ceil(seconds / 60)} min"
