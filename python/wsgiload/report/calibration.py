"""A calibration as a table: the noise floor, and the error for known response times."""

from __future__ import annotations

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from wsgiload.documents.calibration import Calibration, MedianBias, NoiseFloorQuantiles
from wsgiload.report import words
from wsgiload.report.terminal import plain_table

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
