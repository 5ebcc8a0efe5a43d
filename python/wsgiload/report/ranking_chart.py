"""The first chart of a sweep's page: the ranked servers with their figure and its interval on a
logarithmic axis, and the warnings about each server at its row. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from wsgiload.analysis.attempts import is_disturbed
from wsgiload.documents.answer import RankingEntry, RankingLevel
from wsgiload.documents.summary import Summary
from wsgiload.report import findings, words
from wsgiload.report.answer import answer_of
from wsgiload.report.cells import HEADLINE, Cell, Sweep, median_upper_ns
from wsgiload.report.first_screen import figure_text, has_failed, places_of, shown_levels
from wsgiload.report.page import LIGHT
from wsgiload.report.panels import HEADLINE_QUANTILES
from wsgiload.report.ranked_figures import size_words
from wsgiload.report.track import axis_of


@dataclass(frozen=True, slots=True)
class Row:
    """One server; ``point`` and ``ends`` are positions in percent of the axis, or None if nothing
    is drawn."""

    place: str
    label: str
    size: str
    series: int
    figure: str
    interval: str
    point: float | None
    ends: tuple[float, float] | None
    is_ranked: bool
    disturbed: str
    errors: str
    memory: str
    notes: list[str]


@dataclass(frozen=True, slots=True)
class RankingChart:
    """One load level; the servers of a group share a place."""

    heading: str
    ticks: list[tuple[float, str]]
    groups: list[list[Row]]


def ranking_charts(summary: Summary, sweep: Sweep, cautions: Sequence[str]) -> list[RankingChart]:
    """The chart of each level that the answer is about."""
    answer = summary.answer or answer_of(summary)
    return [
        _chart(level, sweep, cautions, is_placed=not has_failed(level, summary))
        for level in shown_levels(answer, summary)
    ]


def _chart(
    level: RankingLevel, sweep: Sweep, cautions: Sequence[str], *, is_placed: bool
) -> RankingChart:
    """The chart of one level; ``is_placed`` is false if no server has a place."""
    is_open = level.rate is not None
    figure, values = _drawn(level, sweep)
    intervals = {
        entry.label: entry.interval_ns
        for entry in level.entries
        if entry.interval_ns and entry.label in values and figure == "p99"
    }
    ends = [end for interval in intervals.values() for end in interval if end is not None]
    axis = axis_of([*values.values(), *ends])
    place_of = places_of(level.entries) if is_placed else {}

    def row(entry: RankingEntry) -> Row:
        label, cells = entry.label, _cells(entry, sweep)
        low, high = intervals.get(label, (None, None))
        text, _, interval = figure_text(entry, is_open=is_open).partition(" [")
        own = [one for one in cautions if _is_about(one, label)]
        if not own and cells and entry.status != "ranked":
            own = [findings.server_sentence(sweep, cells[0].label)]
        return Row(
            place=place_of.get(label, words.MISSING),
            label=label,
            size=size_words(entry),
            series=sweep.labels.index(cells[0].label) % len(LIGHT) if cells else 0,
            figure=text,
            interval=f"[{interval}" if interval else "",
            point=axis.at(values[label]) if axis and label in values else None,
            ends=(axis.at(low), 100.0 if high is None else axis.at(high)) if axis and low else None,
            is_ranked=entry.status == "ranked",
            disturbed=_disturbed(cells),
            errors=words.format_ratio(None if entry.goodput_per_s is None else entry.error_ratio),
            memory=words.format_bytes(entry.memory_peak_bytes),
            notes=own,
        )

    rows = [row(entry) for entry in level.entries]
    form = words.format_duration_ns if is_open else words.format_measured_rate
    return RankingChart(
        heading=f"{figure} at {level.level}",
        ticks=[] if axis is None else axis.ticks(form),
        groups=[list(group) for _, group in groupby(rows, _place_or_name)],
    )


def _is_about(caution: str, label: str) -> bool:
    """Whether the warning is about this server alone."""
    return re.match(rf"{re.escape(label)}(:|'s| (?!and ))", caution) is not None


def _place_or_name(row: Row) -> str:
    """What the rows of a group have in common."""
    return row.place if row.place != words.MISSING else row.label


def _drawn(level: RankingLevel, sweep: Sweep) -> tuple[str, Mapping[str, float]]:
    """The figure that is drawn, and its value for each server: the one that ranks or, without any
    value of it, the highest quantile with values. Of servers that are not ranked, it is drawn only
    if no server is."""
    ranked = [entry for entry in level.entries if entry.status in ("ranked", "errors")]
    entries = ranked or [entry for entry in level.entries if entry.status != "invalid"]
    if level.rate is None:
        return "goodput/s", _known({one.label: one.goodput_per_s for one in entries})
    values = _known({entry.label: entry.value_ns for entry in entries})
    for quantile in reversed(HEADLINE_QUANTILES):
        if not values and quantile < HEADLINE:
            medians = {one.label: median_upper_ns(_cells(one, sweep), quantile) for one in entries}
            if values := _known(medians):
                return words.quantile_name(quantile), values
    return words.quantile_name(HEADLINE), values


def _known(values: Mapping[str, float | None]) -> dict[str, float]:
    return {label: value for label, value in values.items() if value}


def _cells(entry: RankingEntry, sweep: Sweep) -> tuple[Cell, ...]:
    return tuple(cell for cell in sweep.cells if cell.id in entry.cell_ids)


def _disturbed(cells: Sequence[Cell]) -> str:
    """``disturbed``, or ``2 of 6 runs disturbed``; empty if none was."""
    count = sum(is_disturbed(cell.result) for cell in cells)
    if not count:
        return ""
    return "disturbed" if count == len(cells) else f"{count} of {len(cells)} runs disturbed"
