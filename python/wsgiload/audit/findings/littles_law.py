"""In a closed loop, throughput times response time must equal the number of connections."""

from __future__ import annotations

from wsgiload.audit.run import Run, alarm, in_flight
from wsgiload.documents.audit import AuditAlarm
from wsgiload.findings.alarms import LITTLES_LAW
from wsgiload.report.words import (
    format_count,
    format_duration_ns,
    format_per_s,
    plural,
)
from wsgiload.units import three_digits

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
