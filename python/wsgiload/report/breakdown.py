"""Where the slowest requests spent their time: pool wait, connect, first byte, transfer, send lag.
Pure.

The parts of one request add up exactly to its response time, so their means add up to the mean
response time of the slowest requests; quantiles of the parts would not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wsgiload.documents.page_data import PageBar, PageBars, PageBreakdown
from wsgiload.report import words
from wsgiload.report.cells import Cell, Sweep, conditions
from wsgiload.report.grids import Grid
from wsgiload.report.page import Chart
from wsgiload.report.run_files import PARTS, LoadDigest

NAME = "tail"
READING = (
    "Mean over the slowest 1 % of the requests of each run (at least ten requests). Invalid runs "
    "and failed requests are excluded. Pool wait: until a connection is free. First byte: from the "
    "send to the first byte of the response, including the wait in the server's accept queue. Send "
    "lag: the generator's delay. The lengths of the bars are logarithmic; each part has its share "
    "of its bar."
)

Loads = Mapping[str, LoadDigest]


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The slowest requests of one server at one load level, over its valid runs."""

    label: str
    load: float
    requests: int
    failed: int
    # Sums over the requests, in the order of PARTS.
    sums_ns: tuple[int, ...]

    @property
    def means_ns(self) -> tuple[float, ...]:
        """The mean of each part. A part that a request did not have counts as 0."""
        return tuple(total / self.requests for total in self.sums_ns)

    @property
    def largest(self) -> str:
        """The part that took the most time."""
        return PARTS[self.sums_ns.index(max(self.sums_ns))]


def breakdowns(sweep: Sweep, loads: Loads) -> list[Breakdown]:
    """The breakdown of every server at every load level, as far as known."""
    bars = (
        _breakdown(label, load, sweep.at(label, load), loads)
        for label in sweep.labels
        for load in sweep.loads
    )
    return [one for one in bars if one is not None]


def _breakdown(label: str, load: float, cells: Sequence[Cell], loads: Loads) -> Breakdown | None:
    requests, failed, sums = 0, 0, [0] * len(PARTS)
    for cell in cells:
        digest = loads.get(cell.id)
        if digest is None or not cell.usable:
            continue
        requests, failed = requests + digest.slowest, failed + digest.failed
        if digest.slowest:
            sums = [total + part for total, part in zip(sums, digest.sums_ns, strict=True)]
    return Breakdown(label, load, requests, failed, tuple(sums)) if requests else None


def drawn(sweep: Sweep, bars: Sequence[Breakdown]) -> PageBreakdown | None:
    """The numbers of the chart; None without breakdowns."""
    if not bars:
        return None
    loads = sorted({one.load for one in bars})
    panels = tuple(
        PageBars(
            name=words.format_rate(load),
            title=f"at {sweep.load_words(load)}",
            bars=tuple(
                PageBar(
                    server=sweep.labels.index(one.label),
                    values_ns=tuple(round(mean) for mean in one.means_ns),
                )
                for one in bars
                if one.load == load
            ),
        )
        for load in loads
    )
    return PageBreakdown(
        name=NAME, label=_label(sweep), parts=PARTS, chosen=panels[-1].name, panels=panels
    )


def chart(sweep: Sweep, bars: Sequence[Breakdown]) -> Chart:
    """The chart with its table."""
    return Chart(NAME, _label(sweep), _caption(sweep, bars), READING, _grid(bars, sweep))


def _label(sweep: Sweep) -> str:
    return f"Latency breakdown of the slowest requests. {conditions(sweep.experiment)}"


def _caption(sweep: Sweep, bars: Sequence[Breakdown]) -> str:
    """The largest part of each server at the highest load level."""
    load = max(one.load for one in bars)
    servers: dict[str, list[str]] = {}
    for one in bars:
        if one.load == load:
            servers.setdefault(one.largest, []).append(one.label)
    parts = "; ".join(f"{part} ({words.join_words(labels)})" for part, labels in servers.items())
    return f"Largest component at {sweep.load_words(load)}: {parts}."


def _grid(bars: Sequence[Breakdown], sweep: Sweep) -> Grid:
    rows = tuple(
        (
            one.label,
            words.format_rate(one.load),
            words.format_count(one.requests),
            words.format_count(one.failed),
            *(words.format_duration_ns(round(mean)) for mean in one.means_ns),
            words.format_duration_ns(sum(round(mean) for mean in one.means_ns)),
        )
        for one in bars
    )
    headings = ("server", sweep.load_heading, "requests", "failed", *PARTS, "response time")
    return Grid(headings, rows)
