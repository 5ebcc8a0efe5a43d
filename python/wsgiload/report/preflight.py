"""The expected conclusiveness of a plan, in sentences with the options that improve it. Pure."""

from __future__ import annotations

import math

from wsgiload.analysis.preflight import REQUESTS_FOR_P99, Preflight
from wsgiload.report.words import format_span, plural
from wsgiload.statistics.effect import MIN_RUNS, PLANNED_FACTOR


def preflight_lines(outlook: Preflight) -> list[str]:
    """At most two lines: whether p99 will be known, and which differences the runs can resolve."""
    return [*_of_requests(outlook), *_of_runs(outlook)]


def _of_requests(outlook: Preflight) -> list[str]:
    if outlook.needed_duration_s is None:
        return []
    needs = f"the {REQUESTS_FOR_P99:,} requests that p99 needs at the lowest rate"
    # The number of Poisson arrivals varies.
    is_close = (outlook.expected_requests or 0) >= REQUESTS_FOR_P99
    cannot = (
        f"This plan may send fewer than {needs}."
        if is_close
        else f"This plan sends only about {outlook.expected_requests:,} of {needs}."
    )
    return [f"{cannot} Use --duration {outlook.needed_duration_s}s."]


def _of_runs(outlook: Preflight) -> list[str]:
    """Nothing for one server, or if enough runs compare a figure with unknown variation."""
    if outlook.is_race:
        return _of_race(outlook)
    per_level = f"{plural(outlook.runs, 'run')} per server and load level"
    option = span = ""
    if outlook.needed_runs is not None and outlook.needed_s is not None:
        option = f"use --runs {outlook.needed_runs}"
        span = f"about {format_span(outlook.needed_s)}"

    if outlook.factor is not None:
        separates = f"This plan can detect p99 differences of {_percent(outlook.factor)} or more"
        further = f" To detect {_percent(PLANNED_FACTOR)}, {option} ({span})." if option else ""
        return [f"{separates}, given typical variation between runs ({per_level}).{further}"]
    if option:
        few = f"it has {per_level}, but a ranking needs at least {MIN_RUNS}"
        detects = f"To detect p99 differences of {_percent(PLANNED_FACTOR)}, {option} ({span})."
        return [f"This plan cannot rank servers: {few}. {detects}"]
    return []


def _of_race(outlook: Preflight) -> list[str]:
    servers = plural(outlook.servers, "configuration" if outlook.margin is None else "server")
    if outlook.needed_runs is not None and outlook.needed_s is not None:
        return [
            f"This budget allows {plural(outlook.runs, 'block')} of {servers}, but at least "
            f"{outlook.needed_runs} blocks are needed. Use --budget "
            f"{math.ceil(outlook.needed_s / 60)}m."
        ]
    decided = (
        "the leanest that meets the objective is known"
        if outlook.margin is None
        else f"the best is known or tied within {100 * outlook.margin:.0f} %"
    )
    within = format_span(outlook.budget_s)
    line = f"Measures {servers} in blocks until {decided}, for at most {within}."
    if outlook.factor is not None:  # unless the rates are unknown
        smallest = _percent(outlook.factor)
        line += f" On a quiet host this separates differences of about {smallest} or more."
    return [line]


def _percent(factor: float) -> str:
    return f"{100 * (factor - 1):.0f} %"
