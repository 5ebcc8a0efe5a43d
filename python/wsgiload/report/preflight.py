"""What a plan can conclude, in sentences, each with the option that changes it. Pure."""

from __future__ import annotations

import math

from wsgiload.analysis.preflight import REQUESTS_FOR_P99, Preflight
from wsgiload.report.words import format_span, plural
from wsgiload.statistics.effect import FEWEST_RUNS, PLANNED_FACTOR


def preflight_lines(found: Preflight) -> list[str]:
    """At most two: whether p99 will be known, and what the runs can separate."""
    return [*_of_requests(found), *_of_runs(found)]


def _of_requests(found: Preflight) -> list[str]:
    if found.needed_duration_s is None:
        return []
    return [
        f"this plan cannot measure p99 at the lowest rate: it sends about "
        f"{found.fewest_requests:,} requests, but p99 needs {REQUESTS_FOR_P99:,} "
        f"(use --duration {found.needed_duration_s}s)"
    ]


def _of_runs(found: Preflight) -> list[str]:
    """Of one server, or where enough runs compare a figure of unknown spread, nothing."""
    if found.is_race:
        return _of_race(found)
    of_servers = f"{plural(found.runs, 'run')} of each of {plural(found.servers, 'server')}"
    wish = span = ""
    if found.needed_runs is not None and found.needed_s is not None:
        wish = f"use --runs {found.needed_runs}"
        span = f"about {format_span(found.needed_s)}"

    if found.factor is not None:
        separates = f"this plan can detect p99 differences of {_percent(found.factor)} or more"
        further = f"; to detect {_percent(PLANNED_FACTOR)}, {wish} ({span})" if wish else ""
        return [f"{separates}, given typical variation between runs ({of_servers}){further}"]
    if wish:
        few = f"it has {of_servers}, but a ranking needs at least {FEWEST_RUNS}"
        detects = f"to detect {_percent(PLANNED_FACTOR)}, {wish} ({span})"
        return [f"this plan cannot rank servers: {few}; {detects}"]
    return []


def _of_race(found: Preflight) -> list[str]:
    lines = _of_qualifying(found)
    if found.needed_runs is None or found.needed_s is None:
        return lines
    minutes = math.ceil(found.needed_s / 60)
    rounds = f"{plural(found.runs, 'round')} of {plural(found.servers, 'server')}"
    return [
        *lines,
        f"this budget allows {rounds}, but at least {found.needed_runs} rounds are needed "
        f"(use --budget {minutes}m)",
    ]


def _of_qualifying(found: Preflight) -> list[str]:
    if found.qualifying is None:
        return []
    settings, field, time_s = found.qualifying
    return [
        f"short trials of {plural(settings, 'configuration')} select at most {field} for the race, "
        f"in about {format_span(time_s)} per load level"
    ]


def _percent(factor: float) -> str:
    return f"{100 * (factor - 1):.0f} %"
