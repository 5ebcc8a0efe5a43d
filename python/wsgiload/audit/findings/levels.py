"""Findings across the numbers of connections of one tool, and a server that was idle meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

from wsgiload.audit.run import Run, alarm, in_flight
from wsgiload.audit.tools.docker_stats import DOCKER_STATS
from wsgiload.documents.audit import AuditAlarm
from wsgiload.findings.finding import Finding, percent
from wsgiload.findings.over_cells import FLAT_THROUGHPUT
from wsgiload.report.words import format_count, format_duration_ns, format_per_s, format_ratio
from wsgiload.units import NS_PER_S, three_digits

MIN_LEVELS = 3
# The ratio of the highest to the lowest level.
MIN_LEVEL_RATIO = 2.0
# The number of levels that fit into a line of text.
MAX_SHOWN_LEVELS = 4


def closed_levels(runs: Sequence[Run]) -> dict[int, list[Run]]:
    """Closed loops with responses, by their connections in ascending order; empty if there are too
    few, or too close together to show a trend."""
    levels: dict[int, list[Run]] = {}
    for run in runs:
        figures = run.figures
        if figures.connections and figures.achieved_per_s and figures.load == "closed":
            levels.setdefault(figures.connections, []).append(run)
    if len(levels) < MIN_LEVELS or max(levels) < MIN_LEVEL_RATIO * min(levels):
        return {}
    return dict(sorted(levels.items()))


def medians(
    levels: dict[int, list[Run]], figure: Callable[[Run], float | None]
) -> dict[int, float] | None:
    """The median of a figure at each level; None unless it is known at all levels."""
    by_level = {}
    for level, runs in levels.items():
        known = [value for run in runs if (value := figure(run))]
        if not known:
            return None
        by_level[level] = median(known)
    return by_level


def spread(values: dict[int, float]) -> float:
    """The largest value divided by the smallest, minus 1."""
    return max(values.values()) / min(values.values()) - 1


def some_levels(values: dict[int, float]) -> list[int]:
    """The levels that fit into a line: all of them, or the lowest, one in the middle, and the
    highest."""
    levels = list(values)
    if len(levels) <= MAX_SHOWN_LEVELS:
        return levels
    return [levels[0], levels[len(levels) // 2], levels[-1]]


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
    yield levels[max(levels)][0], _alarm_of_cap(accounted)


def _alarm_of_cap(accounted: dict[int, float]) -> AuditAlarm:
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


MIN_IDLE_RATIO = 0.5
MAX_IN_FLIGHT_RATIO = 0.5
IDLE_SERVER = Finding(
    name="idle-server",
    examines="other tools' results: a closed loop, and the docker stats with the same file name",
    premise=f"In at least {percent(MIN_IDLE_RATIO)} of the samples the container used no CPU, and "
    f"at most {percent(MAX_IN_FLIGHT_RATIO)} of the connections had a request in flight.",
    fix="check whether the server keeps connections alive and the client still sends, then repeat "
    "the run",
)


def idle_servers(runs: Sequence[Run]) -> Iterator[tuple[Run, AuditAlarm]]:
    """Each closed loop during which its container was idle although the client waited for it."""
    containers = {
        Path(run.file).with_suffix(""): run
        for run in runs
        if run.tool is DOCKER_STATS and run.part.name is None
    }
    for run in runs:
        container = containers.get(Path(run.file).with_suffix(""))
        busy, connections = in_flight(run), run.figures.connections
        if container is None or run.tool is DOCKER_STATS or busy is None or not connections:
            continue
        idle_ratio = container.figures.idle_ratio or 0.0
        is_waiting = busy <= MAX_IN_FLIGHT_RATIO * connections
        if run.figures.load == "closed" and idle_ratio >= MIN_IDLE_RATIO and is_waiting:
            yield run, _alarm_of_idle(idle_ratio, busy, connections)


def _alarm_of_idle(idle_ratio: float, busy: float, connections: int) -> AuditAlarm:
    return alarm(
        IDLE_SERVER,
        "the server was idle most of the time although connections were waiting: this throughput "
        "is not the server's speed",
        arithmetic=f"no CPU in {format_ratio(idle_ratio)} of the samples (at least "
        f"{format_ratio(MIN_IDLE_RATIO)}); {three_digits(busy)} in flight / "
        f"{format_count(connections)} connections = {three_digits(busy / connections)} (at most "
        f"{MAX_IN_FLIGHT_RATIO})",
        value=idle_ratio,
        limit=MIN_IDLE_RATIO,
    )
