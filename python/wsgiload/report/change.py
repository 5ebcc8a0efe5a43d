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
