"""A minimum delay of 40 ms: Nagle's algorithm waits for a delayed acknowledgement."""

from __future__ import annotations

from itertools import pairwise

from wsgiload.audit.run import Run, alarm, in_flight
from wsgiload.documents.audit import AuditAlarm
from wsgiload.findings.tails import DELAYED_ACKNOWLEDGEMENT_NS, NAGLE_DELAY
from wsgiload.report.words import format_duration_ns, format_ratio

# All delayed responses take about the same time.
MAX_WIDTH_NS = 6_000_000
# The response time below the step, relative to the delay.
MAX_BASE_SHARE = 0.25
# The share of the variance that fast responses would cause.
MIN_VARIANCE_SHARE = 0.5
# The variance relative to the part above the median; symmetric jitter gives at most 2.
MAX_JITTER_RATIO = 2.5
# Relative to the median: the deviation that 1 fast response in 400 causes.
MIN_DEVIATION = 0.05
QUEUE_TOLERANCE = 0.1


def nagle_delay(run: Run) -> AuditAlarm | None:
    """The body arrives 40 ms after the head; with tools that do not measure this, half of the
    responses take 40 ms longer than the fastest, or a part of them 40 ms and the rest far less."""
    delay_ns, what = _delay(run)
    least_ns, most_ns = DELAYED_ACKNOWLEDGEMENT_NS
    if delay_ns is None or not least_ns <= delay_ns <= most_ns:
        return None
    return alarm(
        NAGLE_DELAY,
        f"{what}: typical of Nagle's algorithm in the server, which holds back the body until the "
        "client's delayed ACK",
        arithmetic=f"{format_duration_ns(delay_ns)} is between {format_duration_ns(least_ns)} and "
        f"{format_duration_ns(most_ns)}, the time of a delayed ACK",
        fix="set TCP_NODELAY in the server, or write head and body together, then repeat the run",
        value=delay_ns / 1e6,
        limit=least_ns / 1e6,
    )


def _delay(run: Run) -> tuple[int | None, str]:
    figures = run.figures
    if figures.transfer_ns is not None:
        return figures.transfer_ns, "on average, the body arrives about 40 ms after the head"
    median_ns = figures.quantiles_ns.get("0.5")
    plateau = _plateau(run)
    if plateau is not None:
        return plateau
    if median_ns is None or figures.quantiles_ns.get("0.9", median_ns) - median_ns > MAX_WIDTH_NS:
        return None, ""
    if figures.min_ns is not None:
        if _is_queueing(run, median_ns, figures.min_ns):
            return None, ""
        what = "half of the responses take 40 ms longer than the fastest"
        return median_ns - figures.min_ns, what
    what = "half of the responses take 40 ms, others almost no time"
    return _without_minimum(run, median_ns), what


def _plateau(run: Run) -> tuple[int, str] | None:
    """A delayed share of the responses: adjacent quantiles within the time of a delayed ACK, above
    one that is far faster. A smooth tail has no such step."""
    ordered = sorted((float(key), ns) for key, ns in run.figures.quantiles_ns.items())
    least_ns, most_ns = DELAYED_ACKNOWLEDGEMENT_NS
    delayed = [(key, ns) for key, ns in ordered if least_ns <= ns <= most_ns]
    below = [one for one in ordered if one[1] < least_ns]
    if len(delayed) < 2 or not below or delayed[-1][1] - delayed[0][1] > MAX_WIDTH_NS:
        return None
    if below[-1][1] > MAX_BASE_SHARE * delayed[0][1]:
        return None
    share = delayed[-1][0] - delayed[0][0]
    what = (
        f"at least {format_ratio(share)} of the responses take about 40 ms, and others at most "
        f"{format_duration_ns(below[-1][1])}"
    )
    return delayed[0][1], what


def _is_queueing(run: Run, median_ns: int, min_ns: int) -> bool:
    """Whether a queue explains the difference as well: half of the requests wait until all others
    in flight have been served, one by one."""
    queued_ns = (in_flight(run) or 0) * min_ns
    return abs(median_ns - queued_ns) < QUEUE_TOLERANCE * median_ns


def _without_minimum(run: Run, median_ns: int) -> int | None:
    """The median, if some responses were fast. Fast responses pull the mean below the median and
    increase the deviation; slow ones cannot do both. A share f of responses that take no time gives
    a mean of m (1 - f) and a variance of m² f (1 - f), about m times the difference. Jitter around
    the median varies far less."""
    mean_ns, deviation_ns = run.figures.mean_ns, run.figures.deviation_ns
    if mean_ns is None or deviation_ns is None:
        return None
    below_ns = median_ns - mean_ns
    has_fast = below_ns > 0 and deviation_ns**2 > MIN_VARIANCE_SHARE * median_ns * below_ns
    above_ns2 = _variance_above_ns2(run, median_ns)
    if above_ns2 is not None and deviation_ns > MIN_DEVIATION * median_ns:
        has_fast |= deviation_ns**2 > MAX_JITTER_RATIO * above_ns2
    return median_ns if has_fast else None


def _variance_above_ns2(run: Run, median_ns: int) -> float | None:
    """The maximum contribution to the variance of responses slower than the median: all responses
    between two quantiles are as slow as the upper one."""
    quantiles = sorted((float(key), ns) for key, ns in run.figures.quantiles_ns.items())
    above = [(key, ns) for key, ns in quantiles if key > 0.5]
    if not above or run.figures.max_ns is None:
        return None
    ends = [(0.5, median_ns), *above, (1.0, run.figures.max_ns)]
    return sum(
        (upper - lower) * (ns - median_ns) ** 2 for (lower, _), (upper, ns) in pairwise(ends)
    )
