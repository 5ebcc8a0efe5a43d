"""A calibration as a table: the floor, and how far known holds were missed."""

from __future__ import annotations

from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from wsgiload.report import words
from wsgiload.report.words import Json

_TIMES = {
    "response_time_ns": "response time",
    "send_lag_ns": "send lag",
    "receive_delay_ns": "receive delay",
}
_FIGURES = ("p50", "p99", "p99.9", "max")


def print_calibration(document: Json, console: Console) -> None:
    """The verdict, the floor, and a sentence per hold."""
    verdict = document["verdict"]
    head = [Text(f"verdict: {words.verdict_words(verdict)}")]
    head += [Text(words.reason_words(reason)) for reason in verdict["reasons"]]
    title = (
        f"Floor at {words.format_per_s(document['rate_per_s'])}, keep-alive "
        f"{document['keepalive']}, generator on CPU "
        f"{words.format_cpu_list(document['client_cpus'])}; shown beside later results, never "
        "subtracted"
    )
    console.print(
        Group(
            *head, Text(title, style="dim"), _table(document), *map(Text, bias_sentences(document))
        )
    )


def _table(document: Json) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("time")
    for figure in _FIGURES:
        table.add_column(figure, justify="right", no_wrap=True)
    for key, name in _TIMES.items():
        figures = document["floor"][key]
        row = [
            words.format_duration_ns(figures[figure]) if figures else words.MISSING
            for figure in _FIGURES
        ]
        table.add_row(name, *row)
    return table


def bias_sentences(document: Json) -> list[str]:
    """What a median that is known was measured as."""
    said = []
    for bias in document["bias"]:
        hold = words.format_duration_ns(bias["hold_ns"])
        if bias["bias_ns"] is None:
            said.append(f"service time {hold}: no correct response")
            continue
        verdict = (
            "as it should be"
            if bias["is_within"]
            else "more than the 50 µs that a quiet machine takes"
        )
        if bias["bias_ns"] < 0:
            verdict = "earlier than possible"
        said.append(
            f"hold {hold}: p50 {words.format_duration_ns(bias['bias_ns'])} beyond it, {verdict}"
        )
    return said
