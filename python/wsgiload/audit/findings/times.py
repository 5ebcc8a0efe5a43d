"""Response times that the tool, too few requests or a fixed delay makes wrong."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from wsgiload.analysis.absence import MIN_BEYOND, enough_requests, min_requests
from wsgiload.audit.run import Run, alarm, in_flight
from wsgiload.documents.audit import AuditAlarm
from wsgiload.findings.finding import Finding, percent
from wsgiload.findings.tails import DELAYED_ACKNOWLEDGEMENT_NS, NAGLE_DELAY
from wsgiload.report.words import (
    format_count,
    format_duration_ns,
    format_ratio,
    plural,
    quantile_name,
)

# Half a step of the resolution, relative to the median.
MAX_ROUNDING = 0.1
COARSE_RESOLUTION = Finding(
    name="coarse-resolution",
    examines="other tools' results: the resolution of the response times, compared with the median",
    premise=f"The rounding error (half the resolution) is more than {percent(MAX_ROUNDING)} of "
    "the median, so servers with the same figure may differ severalfold.",
    fix="measure with a tool that records microseconds, such as `wsgiload load`",
)


def coarse_resolution(run: Run) -> AuditAlarm | None:
    """A median that the tool rounded by more than 10 %."""
    figures = run.figures
    median_ns, step_ns = figures.quantiles_ns.get("0.5"), figures.resolution_ns
    if median_ns is None or step_ns is None:
        return None
    half_ns = step_ns / 2
    if median_ns and half_ns / median_ns <= MAX_ROUNDING:
        return None

    rounding = half_ns / median_ns if median_ns else 1.0
    return alarm(
        COARSE_RESOLUTION,
        f"{run.tool_name} reports times in steps of {format_duration_ns(step_ns)}, too coarse "
        "for this median: servers with the same figure may differ severalfold",
        arithmetic=f"± {format_duration_ns(half_ns)} / median {format_duration_ns(median_ns)} = "
        f"± {format_ratio(rounding)} (at most {format_ratio(MAX_ROUNDING)})",
        value=rounding,
        limit=MAX_ROUNDING,
    )


# Some tools always print higher quantiles, but these are rarely published.
MAX_QUANTILE = 0.99
TOO_FEW_REQUESTS = Finding(
    name="too-few-requests",
    examines="other tools' results: the number of requests beyond the highest reported quantile "
    "from p50 to p99",
    premise=f"Fewer than {MIN_BEYOND} requests lie beyond the quantile, so another run may give a "
    "very different value.",
    fix="send more requests, or quote a lower quantile",
)


def too_few_requests(run: Run) -> AuditAlarm | None:
    """The highest quantile up to p99 is based on too few requests."""
    figures = run.figures
    count = figures.requests if figures.timed_requests is None else figures.timed_requests
    printed = sorted(
        float(key) for key in figures.quantiles_ns if 0.5 <= float(key) <= MAX_QUANTILE
    )
    if not printed or not count or not figures.requests or enough_requests(count, printed[-1]):
        return None

    highest = printed[-1]
    reliable = [quantile for quantile in printed if enough_requests(count, quantile)]
    alternative = f", or quote only {quantile_name(reliable[-1])} and lower" if reliable else ""
    beyond = count * (1 - highest)
    return alarm(
        TOO_FEW_REQUESTS,
        f"{quantile_name(highest)} is based on too few requests: a repeated run may give a very "
        "different value",
        arithmetic=f"{format_count(count)} requests × {1 - highest:.10g} = {beyond:.3g} beyond "
        f"{quantile_name(highest)} (at least {MIN_BEYOND})",
        fix=f"send at least {format_count(min_requests(highest))} requests{alternative}",
        value=beyond,
        limit=MIN_BEYOND,
    )


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


MIN_QUANTILES = 3
# If the parts differ less, their mean proves nothing.
MIN_SPREAD = 0.2
# The tolerance for rounding, in steps of the tool's resolution, or relative to the mean.
TOLERANCE_STEPS = 0.6
MIN_TOLERANCE = 0.001
AVERAGED_PERCENTILES = Finding(
    name="averaged-percentiles",
    examines="other tools' results: the percentiles of an aggregated result, compared with those "
    "of the individual results",
    premise=f"At least {MIN_QUANTILES} percentiles equal the mean of the individual percentiles, "
    "unweighted or weighted by request count. A mean of percentiles is not a percentile.",
    fix="merge the histograms or the individual response times, then compute the percentile "
    "(`wsgiload.Histogram` merges with +)",
)


def averaged_percentiles(total: Run, parts: Sequence[Run]) -> AuditAlarm | None:
    """All quantiles of the aggregate are the plain or weighted means of its parts' quantiles."""
    shared = set(total.figures.quantiles_ns)
    for part in parts:
        shared &= set(part.figures.quantiles_ns)
    if len(parts) < 2 or not all(part.figures.requests for part in parts):
        return None

    differing = [key for key in sorted(shared, key=float) if _spread(key, parts) >= MIN_SPREAD]
    if len(differing) < MIN_QUANTILES:
        return None
    plain, weighted = [1.0] * len(parts), [float(part.figures.requests or 0) for part in parts]
    for weights, word in ((plain, "plain"), (weighted, "weighted")):
        if all(_is_mean(total, key, parts, weights) for key in differing):
            return _alarm(total, differing[-1], parts, word)
    return None


def _values(key: str, parts: Sequence[Run]) -> list[int]:
    return [part.figures.quantiles_ns[key] for part in parts]


def _spread(key: str, parts: Sequence[Run]) -> float:
    values = _values(key, parts)
    return max(values) / max(1, min(values)) - 1


def _mean(key: str, parts: Sequence[Run], weights: Sequence[float]) -> float:
    values = zip(_values(key, parts), weights, strict=True)
    return sum(value * weight for value, weight in values) / sum(weights)


def _is_mean(total: Run, key: str, parts: Sequence[Run], weights: Sequence[float]) -> bool:
    mean_ns, shown_ns = _mean(key, parts, weights), total.figures.quantiles_ns[key]
    step_ns = total.figures.resolution_ns or 0
    return abs(mean_ns - shown_ns) <= max(TOLERANCE_STEPS * step_ns, MIN_TOLERANCE * mean_ns)


def _alarm(total: Run, key: str, parts: Sequence[Run], word: str) -> AuditAlarm:
    name, shown_ns = quantile_name(float(key)), total.figures.quantiles_ns[key]
    values = " + ".join(format_duration_ns(value) for value in _values(key, parts)[:4])
    more = " + …" if len(parts) > 4 else ""
    return alarm(
        AVERAGED_PERCENTILES,
        "the percentiles of the total are means of its parts' percentiles, which is wrong: they "
        "can be far off in either direction",
        arithmetic=f"{word} mean of {plural(len(parts), 'part')}: ({values}{more}) / {len(parts)} "
        f"= {format_duration_ns(shown_ns)}, the {name} of the total"
        if word == "plain"
        else f"mean of {plural(len(parts), 'part')}, weighted by requests ({values}{more}): "
        f"{format_duration_ns(shown_ns)}, the {name} of the total",
        value=shown_ns / 1e6,
        limit=max(_values(key, parts)) / 1e6,
    )
