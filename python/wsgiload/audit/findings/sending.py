"""Tools that did not send as planned, or whose figures contradict how they sent."""

from __future__ import annotations

from itertools import pairwise

from wsgiload.audit.run import ERROR_RESPONSES, Run, alarm, in_flight
from wsgiload.documents.audit import AuditAlarm
from wsgiload.findings.alarms import LITTLES_LAW, RATE_NOT_REACHED
from wsgiload.findings.finding import Finding, percent
from wsgiload.findings.tails import CLOSED_LOOP_STALLS
from wsgiload.report.words import (
    format_count,
    format_duration_ns,
    format_per_s,
    format_ratio,
    plural,
    quantile_name,
)
from wsgiload.units import NS_PER_S, three_digits

MIN_SENT_SHARE = 0.99
# A send is late if its delay exceeds this and the mean response time.
MAX_LATE_NS = 50_000_000
SATURATED_CLIENT = Finding(
    name="saturated-client",
    examines="other tools' results: the sent rate, compared with the requested rate, and the "
    "length of the largest burst (httperf)",
    premise=f"The sent rate was below {percent(MIN_SENT_SHARE)} of the requested rate, or the "
    f"tool was late by more than {MAX_LATE_NS / 1e6:g} ms and more than the mean response "
    "time: the client limited the load.",
    fix="use a faster client or several, on cores that the server does not use, and check its send "
    "lag (`wsgiload load` reports it)",
)


def saturated_client(run: Run) -> AuditAlarm | None:
    """The client sent fewer requests than requested, or sent some of them late."""
    return _too_slow(run) or _too_late(run)


def _too_slow(run: Run) -> AuditAlarm | None:
    requested, sent = run.figures.requested_per_s, run.figures.sent_per_s
    if requested is None or sent is None or sent >= MIN_SENT_SHARE * requested:
        return None
    return alarm(
        SATURATED_CLIENT,
        f"{run.tool_name} sent fewer requests than requested: its own limits (workers, CPU, "
        "connections) determined the load",
        arithmetic=f"{format_per_s(sent)} sent / {format_per_s(requested)} requested = "
        f"{format_ratio(sent / requested)} (at least {format_ratio(MIN_SENT_SHARE)})",
        value=sent / requested,
        limit=MIN_SENT_SHARE,
    )


def _too_late(run: Run) -> AuditAlarm | None:
    figures = run.figures
    late_ns, mean_ns = figures.max_send_lag_ns or 0, figures.mean_ns or 0
    limit_ns = max(MAX_LATE_NS, mean_ns)
    if late_ns <= limit_ns or figures.requested_per_s is None:
        return None
    burst = late_ns / 1e9 * figures.requested_per_s + 1
    return alarm(
        SATURATED_CLIENT,
        f"{run.tool_name} fell behind its schedule and sent the missing requests in one burst, "
        "which its response times do not show",
        arithmetic=f"burst of {burst:.0f} at {format_per_s(figures.requested_per_s)} = "
        f"{format_duration_ns(late_ns)} late (at most {format_duration_ns(limit_ns)})",
        value=late_ns / 1e6,
        limit=limit_ns / 1e6,
    )


MIN_ACHIEVED_SHARE = 0.99
# Fewer missing responses may only have been in flight at the end.
MIN_MISSING = 10


def rate_not_reached(run: Run) -> AuditAlarm | None:
    """Fewer responses than requested, or scheduled requests that were never sent."""
    figures = run.figures
    if figures.dropped:
        return _dropped(run, figures.dropped)
    requested, achieved = figures.requested_per_s, figures.achieved_per_s
    if requested is not None and figures.sent_per_s is not None:
        requested = min(requested, figures.sent_per_s)  # `saturated-client` reports the rest
    if requested is None or not achieved or not figures.duration_ns:
        return None

    expected = requested * _sending_ns(run) / NS_PER_S
    responses = (figures.requests or 0) + _failures(run)
    if responses >= MIN_ACHIEVED_SHARE * expected or expected - responses < MIN_MISSING:
        return None

    share = responses / expected
    return alarm(
        RATE_NOT_REACHED,
        f"only {format_per_s(achieved)} of the requested {format_per_s(requested)} was achieved, "
        "so the times do not describe that rate",
        arithmetic=f"{format_count(responses)} responses and failures / {format_count(expected)} "
        f"requests due in {format_duration_ns(_sending_ns(run))} = {format_ratio(share)} (at "
        f"least {format_ratio(MIN_ACHIEVED_SHARE)})",
        value=share,
        limit=MIN_ACHIEVED_SHARE,
    )


def _failures(run: Run) -> int:
    """Requests that were sent and failed; other findings report them."""
    errors = run.figures.errors
    return sum(number for kind, number in errors.items() if kind not in ERROR_RESPONSES)


def _sending_ns(run: Run) -> float:
    """The duration without the wait for the last responses."""
    duration_ns = run.figures.duration_ns or 0
    return max(0, duration_ns - (run.figures.mean_ns or 0))


def _dropped(run: Run, dropped: int) -> AuditAlarm:
    requests = run.figures.requests or 0
    share = dropped / (dropped + requests)
    return alarm(
        RATE_NOT_REACHED,
        f"{format_count(dropped)} iterations were due and never started, because all virtual "
        "users were busy: the response times do not include them",
        arithmetic=f"{format_count(dropped)} dropped / ({format_count(dropped)} + "
        f"{format_count(requests)} requests) = {format_ratio(share)}",
        fix=f"raise maxVUs, or {RATE_NOT_REACHED.fix}",
        value=1 - share,
        limit=1,
    )


MIN_RATIO, MAX_RATIO = 0.9, 1.1
# With fewer requests, the staggered start and end of the connections distort the figures.
MIN_PER_CONNECTION = 20


def littles_law(run: Run) -> AuditAlarm | None:
    """The figures account for fewer connections than there were, or for more."""
    figures, accounted, connections = run.figures, in_flight(run), _connections(run)
    if accounted is None or connections <= 0 or not figures.requests:
        return None
    if figures.load != "closed" and not run.tool.pauses:
        return None

    share, rounding = accounted / connections, _rounding(run, connections)
    if share + rounding < MIN_RATIO and not run.tool.pauses and _is_long_enough(run, accounted):
        message = (
            f"only {three_digits(accounted)} of {format_count(connections)} connections had a "
            "request in flight on average: the others were starved by the server or idle in the "
            "client, and the response times do not include their waiting"
        )
        return _alarm(run, message, accounted, MIN_RATIO)
    # Samples added to correct for coordinated omission increase the mean.
    if share - rounding > MAX_RATIO and not run.tool.corrects_omission:
        message = (
            f"the response times add up to {three_digits(accounted)} concurrent requests, but "
            f"there were only {plural(connections, 'connection')}"
        )
        return _alarm(run, message, accounted, MAX_RATIO)
    return None


def _connections(run: Run) -> int:
    """The connections that the tool could use until the end."""
    connections = run.figures.connections or 0
    if not run.tool.keeps_failed_connections:
        return connections
    return connections - run.figures.errors.get("connect", 0)


def _rounding(run: Run, connections: int) -> float:
    """The change of the share if the mean changes by half a step."""
    figures = run.figures
    if not figures.mean_resolution_ns or not figures.achieved_per_s:
        return 0.0
    return figures.achieved_per_s * figures.mean_resolution_ns / 2e9 / connections


def _is_long_enough(run: Run, accounted: float) -> bool:
    """Whether each active connection carried enough requests, on average."""
    requests = run.figures.requests or 0
    return requests >= MIN_PER_CONNECTION * max(1.0, accounted)


def _alarm(run: Run, message: str, accounted: float, limit: float) -> AuditAlarm:
    figures, connections = run.figures, _connections(run)
    return alarm(
        LITTLES_LAW,
        message,
        arithmetic=(
            f"{format_per_s(figures.achieved_per_s)} × {format_duration_ns(figures.mean_ns)} = "
            f"{three_digits(accounted)} in flight / {format_count(connections)} connections = "
            f"{three_digits(accounted / connections)} (expected: {MIN_RATIO} to {MAX_RATIO})"
        ),
        fix="measure at a fixed rate (`wsgiload load URL -R RATE`), or use no more connections "
        "than the server handles at once",
        value=accounted / connections,
        limit=limit,
    )


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
    return None if share < MAX_TIME_SHARE else _alarm_of_stalls(run, highest, quantile_ns, share)


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


def _alarm_of_stalls(run: Run, highest: float, quantile_ns: int, share: float) -> AuditAlarm:
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
