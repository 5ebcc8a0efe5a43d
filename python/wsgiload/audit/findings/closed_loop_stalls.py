"""Stalls that a closed loop hides, because its connections send nothing while they wait."""

from __future__ import annotations

from itertools import pairwise

from wsgiload.audit.run import Run, alarm
from wsgiload.documents.audit import AuditAlarm
from wsgiload.findings.tails import CLOSED_LOOP_STALLS
from wsgiload.report.words import (
    format_count,
    format_duration_ns,
    format_per_s,
    format_ratio,
    quantile_name,
)
from wsgiload.units import NS_PER_S

# A response this many times as slow as the highest quantile up to p99 is a stall.
STALL_FACTOR = 10
# The share of time spent in stalls, which is the probability that an independent request meets one.
MAX_TIME_SHARE = 0.02
MIN_QUANTILE, MAX_QUANTILE = 0.9, 0.99


def closed_loop_stalls(run: Run) -> AuditAlarm | None:
    """The longest response and the mean show stalls that the quantile does not show."""
    figures = run.figures
    quantiles = {
        float(key): ns for key, ns in figures.quantiles_ns.items() if float(key) <= MAX_QUANTILE
    }
    if figures.load != "closed" or not quantiles or not figures.max_ns or not figures.duration_ns:
        return None
    highest = max(quantiles)
    quantile_ns = max(quantiles[highest], figures.resolution_ns or 1)
    if highest < MIN_QUANTILE or figures.max_ns < STALL_FACTOR * quantile_ns:
        return None

    share = _stalled_share(run, quantiles, figures.max_ns / figures.duration_ns)
    return None if share < MAX_TIME_SHARE else _alarm(run, highest, quantile_ns, share)


def _stalled_share(run: Run, quantiles: dict[float, int], one_stall: float) -> float:
    """The share of time spent in stalls. One stall of all connections is assumed, unless the mean
    is too low for one, or high enough to imply several."""
    mean_ns = run.figures.mean_ns
    if not mean_ns:
        return one_stall
    half_step_ns = (run.figures.mean_resolution_ns or 0) / 2
    steps = list(pairwise(sorted({0.0: run.figures.min_ns or 0, **quantiles}.items())))
    widths = [upper[0] - lower[0] for lower, upper in steps]
    most_ns = sum(width * upper[1] for width, (_, upper) in zip(widths, steps, strict=True))
    least_ns = sum(width * lower[1] for width, (lower, _) in zip(widths, steps, strict=True))

    at_least = max(0.0, 1 - most_ns / max(1.0, mean_ns - half_step_ns))
    at_most = 1 - least_ns / (mean_ns + half_step_ns)
    return max(at_least, one_stall if one_stall <= at_most else 0.0)


def _alarm(run: Run, highest: float, quantile_ns: int, share: float) -> AuditAlarm:
    figures = run.figures
    name, longest_ns = quantile_name(highest), figures.max_ns or 0
    due = (figures.achieved_per_s or 0.0) * longest_ns / NS_PER_S
    open_ns = max(0.0, longest_ns * (1 - (1 - highest) / share))
    return alarm(
        CLOSED_LOOP_STALLS,
        f"a closed loop hides stalls of up to {format_duration_ns(longest_ns)}: independent users "
        f"would see a {name} of up to {format_duration_ns(open_ns)} instead of "
        f"{format_duration_ns(quantile_ns)}",
        arithmetic=f"{format_per_s(figures.achieved_per_s)} × {format_duration_ns(longest_ns)} = "
        f"{format_count(due)} requests due during such a stall, but each connection sends only "
        f"one; stalls take up to {format_ratio(share)} of the time; "
        f"{format_ratio(1 - highest)} of the requests are beyond {name}",
        fix="measure in an open loop (`wsgiload load URL -R RATE`), which sends on schedule and "
        "counts every request that waits",
        value=share,
        limit=MAX_TIME_SHARE,
    )
