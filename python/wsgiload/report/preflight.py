"""What is known before a measurement: the expected conclusiveness of a plan, in sentences with the
options that improve it, and the noise floor of a calibration as a table."""

from __future__ import annotations

import math

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from wsgiload.analysis.preflight import REQUESTS_FOR_P99, Preflight
from wsgiload.documents.run_info import Calibration, MedianBias, NoiseFloorQuantiles
from wsgiload.report import words
from wsgiload.report.terminal import plain_table
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
        allowed = plural(outlook.runs, "block") if outlook.runs else "no complete block"
        return [
            f"This budget allows {allowed} of {servers}, but at least "
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


_FIGURES = ("p50", "p99", "p99.9", "max")


def print_calibration(document: Calibration, console: Console) -> None:
    """Print the verdict, the noise floor, and a sentence for each known response time."""
    verdict = Text(f"verdict: {words.verdict_words(document.verdict)}")
    reasons = [Text(words.reason_words(reason)) for reason in document.verdict.reasons]
    title = (
        f"Noise floor at {words.format_per_s(document.rate_per_s)}, keep-alive "
        f"{document.keepalive}, generator on CPU "
        f"{words.format_cpu_list(document.client_cpus)}; reported with later results, never "
        "subtracted"
    )
    biases = [Text(sentence) for sentence in bias_sentences(document)]
    console.print(Group(verdict, *reasons, Text(title, style="dim"), _table(document), *biases))


def _table(document: Calibration) -> Table:
    table = plain_table("time", numbers=_FIGURES)
    floor = document.noise_floor
    times = {
        "response time": floor.response_time_ns,
        "send lag": floor.send_lag_ns,
        "receive delay": floor.receive_delay_ns,
    }
    for name, figures in times.items():
        table.add_row(name, *_row(figures))
    return table


def _row(figures: NoiseFloorQuantiles | None) -> list[str]:
    if figures is None:
        return [words.MISSING] * len(_FIGURES)
    times_ns = (figures.p50, figures.p99, figures.p99_9, figures.max)
    return [words.format_duration_ns(time_ns) for time_ns in times_ns]


def bias_sentences(document: Calibration) -> list[str]:
    """A sentence for each known response time: its measured median."""
    return [_bias_sentence(bias) for bias in document.bias]


def _bias_sentence(bias: MedianBias) -> str:
    hold = words.format_duration_ns(bias.service_time_ns)
    if bias.bias_ns is None:
        return f"service time {hold}: no correct response"
    if bias.bias_ns < 0:
        judgement = "impossible: below the service time"
    elif bias.is_within:
        judgement = "at most 50 µs, as expected on an idle machine"
    else:
        judgement = "more than the 50 µs expected on an idle machine"
    error = words.format_duration_ns(bias.bias_ns)
    return f"service time {hold}: p50 error {error} ({judgement})"
