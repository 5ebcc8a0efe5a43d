"""The comparison of two stored runs: its first screen with the largest changes, and the page with a
forest plot and overlaid curves. Offline, like the report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

import msgspec

from wsgiload.analysis.comparison import Change
from wsgiload.analysis.ranking import center_of, interval_of
from wsgiload.documents.over_cells import Comparison
from wsgiload.documents.page_data import PageChart
from wsgiload.documents.summary import Summary
from wsgiload.report import findings, forest, grids, page, panels, words
from wsgiload.report.answer_box import AnswerBox, markdown_of
from wsgiload.report.cautions import at_most_five
from wsgiload.report.cells import Cell, Sweep, median_of, median_upper_ns, read_sweep
from wsgiload.report.over_runs import change_sentence, load_words, sessions_note
from wsgiload.statistics.effect import MIN_RUNS
from wsgiload.units import three_digits

_RUNS = ("first", "second")


@dataclass(frozen=True, slots=True)
class ChangePage:
    """The data of ``change.html.j2``."""

    title: str
    runs: tuple[str, str]
    answer: AnswerBox
    note: str
    sentences: list[tuple[str, str]]
    unlike: list[str]
    forest: forest.Forest | None
    charts: list[page.Chart]
    palette: page.Palette


def render(change: Change, summaries: tuple[Summary, Summary]) -> str:
    """The page as HTML."""
    sweep = _overlaid(summaries)
    drawn = panels.all_charts(sweep)
    shown = ChangePage(
        title="What changed between two runs",
        runs=change.runs,
        answer=change_screen(change, (read_sweep(summaries[0]), read_sweep(summaries[1]))),
        note=NOTE,
        sentences=[(change_sentence(entry), entry.conclusion) for entry in change.comparisons],
        unlike=list(change.unlike),
        forest=forest.forest_of(
            change.comparisons, "Ratios between the runs", "second run / first run", "", _name
        ),
        charts=_charts(sweep, drawn),
        palette=page.palette(),
    )
    data = msgspec.structs.replace(
        page.nothing_drawn(sweep.labels), runs_each=len(_RUNS), charts=drawn
    )
    return page.render("change.html.j2", shown, data)


def _overlaid(summaries: tuple[Summary, Summary]) -> Sweep:
    """Both runs as one sweep: each server of both runs appears twice, once for each run."""
    first, second = (read_sweep(summary) for summary in summaries)
    common = [label for label in first.labels if label in second.labels]
    cells = [
        _of_run(cell, run)
        for label in common
        for sweep, run in zip((first, second), _RUNS, strict=True)
        for cell in sweep.of(label)
    ]
    return replace(
        first,
        cells=tuple(cells),
        labels=tuple(_label(label, run) for label in common for run in _RUNS),
        loads=tuple(sorted({cell.load for cell in cells})),
    )


def _label(label: str, run: str) -> str:
    return f"{label} ({run})"


def _of_run(cell: Cell, run: str) -> Cell:
    """The same cell, named after its run."""
    alias = _label(cell.label, run)
    return Cell(msgspec.structs.replace(cell.result, alias=alias, size=None, legacy=False))


def _charts(sweep: Sweep, drawn: Sequence[PageChart]) -> list[page.Chart]:
    """The curves, each with its table."""
    readings = {
        "response-time": (findings.RESPONSE_TIME_READING, grids.of_times(sweep, {})),
        "goodput": (
            findings.GOODPUT_READING,
            grids.of_columns(sweep, grids.GOODPUT_COLUMNS),
        ),
        "resources": (
            findings.RESOURCE_READING,
            grids.of_columns(sweep, grids.RESOURCE_COLUMNS),
        ),
        "spectrum": (findings.SPECTRUM_READING, grids.of_spectrum(sweep)),
    }
    return [
        page.Chart(chart.name, chart.label, "", *readings[chart.name], chart.absent)
        for chart in drawn
    ]


def _name(entry: Comparison) -> str:
    return f"{entry.first} at {load_words(entry)}"


MAX_ROWS = 10
HEADINGS = ("server", "load", "first run", "second run", "ratio", "95 % CI", "verdict")
_QUANTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
_VERDICTS = {
    "different": "different",
    "same": "equivalent within ±5 %",
    "undecided": "no significant difference",
}
NOTE = (
    "Medians over runs; for p99 of four or more runs, the geometric mean with its 95 % "
    "confidence interval; and the ratio of the second to the first stored run. The largest changes "
    "come first; all comparisons are below."
)


def change_screen(change: Change, sweeps: tuple[Sweep, Sweep]) -> AnswerBox:
    """The first screen."""
    ranked = sorted(change.comparisons, key=by_size)
    first, second = (PurePath(run).name for run in change.runs)
    rows = [_row(entry, sweeps) for entry in ranked[:MAX_ROWS]]
    box = AnswerBox(
        question=f"What changed from {first} to {second}?",
        sentence=_sentence(ranked),
        command_line=None,
        needs=_needs(ranked),
        tables=[(list(HEADINGS), rows)],
        cautions=tuple(at_most_five(change.unlike, " differences; all are listed below")),
        markdown="",
    )
    return markdown_of(box)


def by_size(entry: Comparison) -> tuple[bool, float]:
    """Sort key: significant differences first, and the largest changes first in each group."""
    size = abs(math.log(entry.factor)) if entry.factor else 0.0
    return (entry.conclusion != "different", -size)


def _sentence(ranked: Sequence[Comparison]) -> str:
    different = [entry for entry in ranked if entry.conclusion == "different"]
    count, all_of_them = len(different), words.plural(len(ranked), "comparison")
    if count:
        lead = f"{count} of {all_of_them} {'shows' if count == 1 else 'show'} a difference"
        largest = "Largest: " if count > 1 else ""
        return f"{lead}. {largest}{change_sentence(different[0])}."
    if all(entry.conclusion == "no inference" for entry in ranked):
        return f"Too few valid runs for a comparison: {change_sentence(ranked[0])}."
    same = sum(entry.conclusion == "same" for entry in ranked)
    verb = "is" if same == 1 else "are"
    known = f"; {same} of {all_of_them} {verb} equivalent within ±5 %" if same else ""
    return (
        f"No significant difference in {ranked[0].figure}{known}. {sessions_note(ranked)}".rstrip()
    )


def _needs(ranked: Sequence[Comparison]) -> str | None:
    if any(entry.conclusion == "no inference" and entry.factor is not None for entry in ranked):
        return f"repeat both with --runs {MIN_RUNS} or more"
    return None


def _row(entry: Comparison, sweeps: tuple[Sweep, Sweep]) -> list[str]:
    load = float(entry.rate if entry.rate is not None else entry.connections or 0)
    values = [_figure(entry, sweep.at(entry.first, load)) for sweep in sweeps]
    interval = entry.interval_95
    return [
        entry.first,
        load_words(entry),
        *values,
        words.MISSING if entry.factor is None else f"{three_digits(entry.factor)}×",
        words.MISSING
        if interval is None
        else f"{three_digits(interval[0])} to {three_digits(interval[1])}",
        verdict_words(entry),
    ]


def verdict_words(entry: Comparison) -> str:
    """``equivalent within ±5 %``."""
    return _VERDICTS.get(entry.conclusion, "not compared")


def _figure(entry: Comparison, cells: tuple[Cell, ...]) -> str:
    quantile = _QUANTILES.get(entry.figure)
    if quantile is None:
        return words.format_measured_per_s(median_of(cells, lambda cell: cell.goodput_per_s))
    results = [cell.result for cell in cells if cell.status != "invalid"]
    interval = interval_of(results) if entry.figure == "p99" else None
    if interval is None:
        return words.format_duration_ns(median_upper_ns(cells, quantile))
    value = words.format_duration_ns(center_of(results))
    return f"{value} [{words.format_interval(interval)}]"
