"""Requests in flight that do not grow with the connections: the server serves a limited number of
connections."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wsgiload.audit.findings.series import closed_levels, medians, some_levels, spread
from wsgiload.audit.run import Run, alarm, in_flight
from wsgiload.documents.audit import AuditAlarm
from wsgiload.findings.finding import Finding, percent
from wsgiload.report.words import format_count
from wsgiload.units import three_digits

SAME_WITHIN = 0.1
# If more than this share of the most connections is in flight, there is no cap.
MAX_SERVED_SHARE = 0.5
CAPPED_CONCURRENCY = Finding(
    name="capped-concurrency",
    examines="other tools' results: throughput × mean response time at three or more numbers of "
    "connections",
    premise=f"The product varies by at most {percent(SAME_WITHIN)} while the number of "
    f"connections at least doubles, and never exceeds {percent(MAX_SERVED_SHARE)} of the "
    "largest number: the server serves a fixed number of connections, and the others get "
    "no responses.",
    fix="use no more connections than the server serves, or compare at fixed rates",
)


def capped_concurrency(runs: Sequence[Run]) -> Iterator[tuple[Run, AuditAlarm]]:
    """Compares runs of one tool at different levels; reports the alarm for a run with the most
    connections."""
    levels = closed_levels(runs)
    accounted = medians(levels, in_flight)
    if not accounted or spread(accounted) > SAME_WITHIN:
        return
    if max(accounted.values()) > MAX_SERVED_SHARE * max(levels):
        return
    yield levels[max(levels)][0], _alarm(accounted)


def _alarm(accounted: dict[int, float]) -> AuditAlarm:
    shown = ", ".join(
        f"{format_count(level)} connections {three_digits(accounted[level])}"
        for level in some_levels(accounted)
    )
    cap = format_count(max(accounted.values()))
    return alarm(
        CAPPED_CONCURRENCY,
        f"at every level, the server serves about {cap} connections at a time and the others "
        "starve, so all levels measure the same load",
        arithmetic=f"in flight (throughput × mean response time): {shown}; largest / smallest = "
        f"{three_digits(1 + spread(accounted))} (same: at most {1 + SAME_WITHIN})",
        fix=f"use at most {cap} connections, or compare at fixed rates (`wsgiload sweep --rates`)",
        value=spread(accounted),
        limit=SAME_WITHIN,
    )
