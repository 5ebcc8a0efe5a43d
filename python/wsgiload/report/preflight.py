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
    if outlook.margin is not None and outlook.needed_runs is None:
        separates = (
            "On a quiet host this separates differences of about "
            f"{_percent(outlook.factor)} or more."
            if outlook.factor is not None  # the rates are known
            else ""
        )
        return [
            f"Measures {plural(outlook.servers, 'server')} in blocks until the best is known or "
            f"tied within {100 * outlook.margin:.0f} %, for at most "
            f"{format_span(outlook.budget_s)}. {separates}".rstrip()
        ]
    lines = _of_qualifying(outlook)
    if outlook.needed_runs is None or outlook.needed_s is None:
        return lines
    minutes = math.ceil(outlook.needed_s / 60)
    rounds = f"{plural(outlook.runs, 'round')} of {plural(outlook.servers, 'server')}"
    return [
        *lines,
        f"This budget allows {rounds}, but at least {outlook.needed_runs} rounds are needed. Use "
        f"--budget {minutes}m.",
    ]


def _of_qualifying(outlook: Preflight) -> list[str]:
    if outlook.qualifying is None:
        return []
    settings, field, time_s = outlook.qualifying
    return [
        f"Short trials of {plural(settings, 'configuration')} select at most {field} for the race, "
        f"in about {format_span(time_s)} per load level."
    ]


def _percent(factor: float) -> str:
    return f"{100 * (factor - 1):.0f} %"
