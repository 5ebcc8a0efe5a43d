"""The page of ``wsgiload compare``: sentences, a forest plot, and the overlaid curves of two stored
runs. Offline, like the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from wsgiload.analysis.comparison import Change
from wsgiload.documents.over_cells import Comparison
from wsgiload.documents.page_data import PageChart
from wsgiload.documents.summary import Summary
from wsgiload.report import findings, forest, grids, page, panels
from wsgiload.report.answer_box import AnswerBox
from wsgiload.report.cells import Cell, Sweep, read_sweep
from wsgiload.report.change_screen import NOTE, change_screen
from wsgiload.report.over_runs import change_sentence, load_words

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
    forest: page.Chart | None
    charts: list[page.Chart]
    palette: page.Palette


def render(change: Change, summaries: tuple[Summary, Summary]) -> str:
    """The page as HTML."""
    factors = forest.forest_data(change.comparisons, "second run / first run", _name)
    sweep = _overlaid(summaries)
    drawn = panels.all_charts(sweep)
    shown = ChangePage(
        title="What changed between two runs",
        runs=change.runs,
        answer=change_screen(change, (read_sweep(summaries[0]), read_sweep(summaries[1]))),
        note=NOTE,
        sentences=[(change_sentence(entry), entry.conclusion) for entry in change.comparisons],
        unlike=list(change.unlike),
        forest=None if factors is None else _forest(change.comparisons),
        charts=_charts(sweep, drawn),
        palette=page.palette(),
    )
    data = msgspec.structs.replace(
        page.nothing_drawn(sweep.labels), runs_each=len(_RUNS), charts=drawn, forest=factors
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
    readings = (
        (findings.RESPONSE_TIME_READING, grids.of_times(sweep, {})),
        (findings.GOODPUT_READING, grids.of_columns(sweep, grids.GOODPUT_COLUMNS)),
        (findings.RESOURCE_READING, grids.of_columns(sweep, grids.RESOURCE_COLUMNS)),
        (findings.SPECTRUM_READING, grids.of_spectrum(sweep)),
    )
    return [
        page.Chart(chart.name, chart.label, "", reading, grid)
        for chart, (reading, grid) in zip(drawn, readings, strict=True)
    ]


def _forest(comparisons: Sequence[Comparison]) -> page.Chart:
    """The factors as a chart."""
    rows = forest.drawable(comparisons)
    numbers = tuple((_name(entry), *forest.row_numbers(entry)) for entry in rows)
    grid = grids.Grid(("server", *forest.HEADINGS[1:]), numbers)
    return page.Chart("forest", "Ratios between the runs", "", forest.READING, grid)


def _name(entry: Comparison) -> str:
    return f"{entry.first} at {load_words(entry)}"
