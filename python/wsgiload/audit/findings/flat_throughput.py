"""Throughput that does not grow with the connections."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wsgiload.audit.findings.series import closed_levels, medians, some_levels, spread
from wsgiload.audit.run import Run, alarm
from wsgiload.documents.audit import AuditAlarm
from wsgiload.findings.over_cells import FLAT_THROUGHPUT
from wsgiload.report.words import format_count, format_duration_ns, format_per_s
from wsgiload.units import NS_PER_S, three_digits

FLAT_WITHIN = 0.05


def flat_throughput(runs: Sequence[Run]) -> Iterator[tuple[Run, AuditAlarm]]:
    """Compares runs of one tool at different levels; reports the alarm for a run with the most
    connections."""
    levels = closed_levels(runs)
    rates = medians(levels, lambda run: run.figures.achieved_per_s)
    if rates and spread(rates) <= FLAT_WITHIN:
        yield levels[max(levels)][0], _alarm(rates, levels[min(levels)][0])


def _alarm(rates: dict[int, float], lowest: Run) -> AuditAlarm:
    shown = ", ".join(
        f"{format_count(level)} connections {format_per_s(rates[level])}"
        for level in some_levels(rates)
    )
    return alarm(
        FLAT_THROUGHPUT,
        f"throughput stays the same from {format_count(min(rates))} to {format_count(max(rates))} "
        "connections: the server handles a fixed number of requests at once, and more connections "
        "only wait longer",
        arithmetic=f"{shown}: largest / smallest = {three_digits(1 + spread(rates))} "
        f"(flat: at most {1 + FLAT_WITHIN}){_cap(lowest)}",
        fix="compare at rates below this throughput (`wsgiload sweep --rates`), and state the "
        "server's concurrency next to the result",
        value=spread(rates),
        limit=FLAT_WITHIN,
    )


def _cap(lowest: Run) -> str:
    """The concurrency at the lowest level, where requests queue the least."""
    rate, mean_ns = lowest.figures.achieved_per_s, lowest.figures.mean_ns
    if rate is None or mean_ns is None:
        return ""
    return (
        f"; at most {three_digits(rate * mean_ns / NS_PER_S)} at once "
        f"({format_per_s(rate)} × {format_duration_ns(mean_ns)})"
    )
