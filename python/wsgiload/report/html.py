"""One offline HTML page from a run directory.

The page loads no external resources. It contains all text and tables; its script only draws charts.
The order is fixed: answer, servers, curves with their data, results over all runs, validity, cells
over time, errors, all cells, plan and host, raw files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from wsgiload.documents.codec import to_plain
from wsgiload.documents.page_data import PageChart
from wsgiload.documents.summary import Summary
from wsgiload.report import (
    breakdown,
    coincidence,
    command_line,
    findings,
    first_screen,
    forest,
    grids,
    over_runs,
    page,
    panels,
    table,
    timelines,
    words,
)
from wsgiload.report.answer_box import AnswerBox
from wsgiload.report.breakdown import Breakdown
from wsgiload.report.cells import Sweep, conditions, read_sweep
from wsgiload.report.forest import RankingChart, ranking_charts
from wsgiload.report.page import Chart, Download, download, facts, nothing_drawn
from wsgiload.report.run_files import RunFiles
from wsgiload.report.strip import Strip
from wsgiload.report.timelines import ServerStrips

_DOWNLOADS = (
    ("summary.json", "application/json"),
    ("run.json", "application/json"),
    ("intervals.csv", "text/csv"),
    ("resources.csv", "text/csv"),
)


@dataclass(frozen=True, slots=True)
class Remark:
    """A failed check or a note, with its cells."""

    head: str
    sentence: str
    level: str
    cells: str


@dataclass(frozen=True, slots=True)
class OverRuns:
    """The results over several runs."""

    forest: forest.Forest | None
    aggregates: grids.Grid
    note: str
    comparisons: list[tuple[str, str]]
    comparison_note: str = over_runs.COMPARISON_NOTE
    discard_rule: str = over_runs.DISCARD_RULE


@dataclass(frozen=True, slots=True)
class ReportPage:
    """The data of ``template.html.j2``."""

    title: str
    status: str
    started: str
    conditions: str
    about: tuple[str, ...]
    answer: AnswerBox
    rankings: list[RankingChart]
    cautions: list[str]
    sustained_meaning: str
    status_counts: str
    validity_class: str
    remarks: list[Remark]
    session: list[tuple[str, str]]
    load_points: list[str]
    over_runs: OverRuns | None
    facts: list[str]
    charts: list[Chart]
    strips: list[ServerStrips]
    strips_left_out: int
    over_time_reading: str
    errors: grids.Grid
    cells: grids.Grid
    verdicts: list[str]
    settings: list[tuple[str, str]]
    plan: list[tuple[str, str]]
    host: list[tuple[str, str]]
    downloads: list[Download]
    palette: page.Palette


def render(files: RunFiles) -> str:
    """The page as HTML."""
    sweep = _with_keepalive(read_sweep(files.summary), files)
    strips = timelines.strips_of(sweep, files)
    parts = breakdown.breakdowns(sweep, files.loads)
    data = msgspec.structs.replace(
        nothing_drawn(sweep.labels),
        charts=panels.all_charts(sweep),
        timelines=timelines.drawn(sweep, strips),
        breakdown=breakdown.drawn(sweep, parts),
    )
    shown = _report_page(files, sweep, Drawn(data.charts, strips, parts))
    return page.render("template.html.j2", shown, data)


@dataclass(frozen=True, slots=True)
class Drawn:
    """The data of the charts."""

    charts: Sequence[PageChart]
    strips: Sequence[Strip]
    parts: Sequence[Breakdown]


def _report_page(files: RunFiles, sweep: Sweep, drawn: Drawn) -> ReportPage:
    summary = files.summary
    answer = first_screen.first_screen(summary)
    rankings = ranking_charts(summary, sweep, answer.cautions)
    at_rows = [
        note for one in rankings for group in one.groups for row in group for note in row.notes
    ]
    return ReportPage(
        title=_page_title(sweep),
        status=words.status_words(summary),
        started=files.run.started_utc,
        conditions=conditions(sweep.experiment),
        about=_about(summary),
        answer=answer,
        rankings=rankings,
        cautions=[one for one in answer.cautions if one not in at_rows],
        sustained_meaning=findings.sustained_meaning(sweep),
        status_counts=findings.status_counts(sweep),
        validity_class=_worst(sweep),
        remarks=_remarks(sweep),
        session=over_runs.session_lines(summary),
        load_points=[*over_runs.overload_lines(summary), *over_runs.power_lines(summary)],
        over_runs=_over_runs(summary) if sweep.runs > 1 else None,
        facts=_validity_facts(sweep, files),
        charts=_sweep_charts(sweep, files, drawn),
        strips=timelines.groups_of(sweep, drawn.strips),
        strips_left_out=_recorded(sweep, files) - len(drawn.strips),
        over_time_reading=timelines.READING,
        errors=grids.of_errors(sweep, files.loads),
        cells=grids.of_cells(sweep),
        verdicts=[cell.status for cell in sweep.cells],
        settings=command_line.settings_of(sweep),
        plan=facts(to_plain(sweep.experiment)),
        host=facts(to_plain(files.run.host)),
        downloads=[download(files.directory / name, kind) for name, kind in _DOWNLOADS],
        palette=page.palette(),
    )


def _recorded(sweep: Sweep, files: RunFiles) -> int:
    """The number of cells that can be drawn over time."""
    return sum(cell.id in files.recorded for cell in sweep.cells)


def _validity_facts(sweep: Sweep, files: RunFiles) -> list[str]:
    return [
        *findings.generator_facts(sweep, files.loads),
        *findings.limit_facts(sweep),
        *coincidence.interventions(files.summary),
    ]


def _with_keepalive(sweep: Sweep, files: RunFiles) -> Sweep:
    """The sweep with the keep-alive policy for titles: from the experiment or, without one, from
    the plan of a load."""
    if sweep.experiment.keepalive is not None:
        return sweep
    for load in files.loads.values():
        experiment = msgspec.structs.replace(sweep.experiment, keepalive=load.keepalive)
        return replace(sweep, experiment=experiment)
    return sweep


def _about(summary: Summary) -> tuple[str, ...]:
    """The experiment's source and notes, from its file."""
    source = summary.experiment.source
    return (*(() if source is None else (f"Source: {source}",)), *summary.experiment.notes)


def _page_title(sweep: Sweep) -> str:
    if sweep.experiment.title is not None:
        return sweep.experiment.title
    app = _each(sweep.experiment.app or sweep.experiment.name or "WSGI app")
    path = _each(sweep.experiment.path or "")
    servers = words.plural(len(sweep.labels), "server")
    if not sweep.loads:
        return f"{app} {path}: {servers}"

    first, last = words.format_rate(sweep.loads[0]), words.format_rate(sweep.loads[-1])
    unit = "requests/s" if sweep.open_loop else "connections"
    span = first if first == last else f"{first} to {last}"
    return f"{app}{' ' + path if path else ''}: {servers}, {span} {unit}"


def _each(value: str | tuple[str, ...]) -> str:
    return value if isinstance(value, str) else words.join_words(value)


def _worst(sweep: Sweep) -> str:
    statuses = {cell.status for cell in sweep.cells}
    return next((status for status in ("invalid", "failed", "warn") if status in statuses), "valid")


def _over_runs(summary: Summary) -> OverRuns:
    comparisons = summary.comparisons or ()
    aggregates = grids.Grid(
        over_runs.aggregate_headings(summary), tuple(over_runs.aggregate_rows(summary))
    )
    return OverRuns(
        forest=forest.forest_of(
            comparisons,
            "Ratios between servers",
            "first / second server",
            forest.caption(comparisons),
        ),
        aggregates=aggregates,
        note=over_runs.aggregate_note(summary),
        comparisons=over_runs.comparison_lines(summary),
    )


def _remarks(sweep: Sweep) -> list[Remark]:
    levels = {"red": "invalid", "yellow": "warn"}
    remarks = []
    for sentence, style, cells in table.remarks(sweep):
        level = levels.get(style, "note")
        head, _, tail = sentence.partition(": ") if level != "note" else ("", "", sentence)
        remarks.append(Remark(head, tail, level, cells))
    return remarks


def _sweep_charts(sweep: Sweep, files: RunFiles, drawn: Drawn) -> list[Chart]:
    """The charts over the load level, each with its caption and table."""
    captions = {
        "response-time": (
            findings.response_time_caption(sweep),
            findings.RESPONSE_TIME_READING,
            grids.of_times(sweep, files.loads),
        ),
        "goodput": (
            findings.goodput_caption(sweep),
            findings.GOODPUT_READING,
            grids.of_columns(sweep, grids.GOODPUT_COLUMNS),
        ),
        "resources": (
            findings.resource_caption(sweep),
            findings.RESOURCE_READING,
            grids.of_columns(sweep, (*grids.RESOURCE_COLUMNS, *grids.service_columns(sweep))),
        ),
        "spectrum": (
            findings.spectrum_caption(sweep, sweep.loads),
            findings.SPECTRUM_READING,
            grids.of_spectrum(sweep),
        ),
    }
    charts = [
        Chart(chart.name, chart.label, *captions[chart.name], chart.absent)
        for chart in drawn.charts
    ]
    return [*charts, breakdown.chart(sweep, drawn.parts)] if drawn.parts else charts
