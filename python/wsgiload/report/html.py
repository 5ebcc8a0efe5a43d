"""One offline HTML page from a run directory.

The page loads no external resources. It contains all text and tables; its script only draws charts.
The order is fixed: answer, servers, curves with their data, results over all runs, validity, cells
over time, errors, all cells, plan and host, raw files.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from wsgiload.documents.codec import to_plain
from wsgiload.documents.over_cells import Comparison
from wsgiload.documents.page_data import PageChart
from wsgiload.documents.summary import Summary
from wsgiload.experiment.procedure import Method
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
from wsgiload.report.cells import (
    Cell,
    Sweep,
    conditions,
    finite_median,
    median_upper_ns,
    read_sweep,
)
from wsgiload.report.page import Chart, Download, download, facts, nothing_drawn
from wsgiload.report.run_files import RunFiles, read_run
from wsgiload.report.strip import Strip
from wsgiload.report.timelines import ServerStrips
from wsgiload.statistics.effect import MIN_RUNS

MAX_GRID_LOADS = 6
_DOWNLOADS = (
    ("summary.json", "application/json"),
    ("run.json", "application/json"),
    ("intervals.csv", "text/csv"),
    ("resources.csv", "text/csv"),
)


@dataclass(frozen=True, slots=True)
class Mark:
    """One field of the verdict grid: a sign, p99, and the meaning of the sign."""

    kind: str
    value: str
    meaning: str
    sign: str = ""


@dataclass(frozen=True, slots=True)
class ServerRow:
    """One server of the verdict grid."""

    label: str
    index: int
    sentence: str
    marks: list[Mark]


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

    forest: Chart | None
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
    sustained_meaning: str
    no_inference: str
    loads: list[str]
    servers: list[ServerRow]
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


def write_html(
    run_dir: Path,
    method: Method | None = None,
    slo: Sequence[str] = (),
    summary: Summary | None = None,
) -> Path:
    """Write report.html into the run directory and return its path. ``summary``: with its
    conclusions, if it was read before."""
    return page.write(run_dir / "report.html", render(read_run(run_dir, method, slo, summary)))


def render(files: RunFiles) -> str:
    """The page as HTML."""
    sweep = _with_keepalive(read_sweep(files.summary), files)
    strips = timelines.strips_of(sweep, files)
    parts = breakdown.breakdowns(sweep, files.loads)
    data = msgspec.structs.replace(
        nothing_drawn(sweep.labels),
        charts=panels.all_charts(sweep),
        timelines=timelines.drawn(sweep, strips),
        forest=forest.forest_data(files.summary.comparisons or ()),
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
    return ReportPage(
        title=_page_title(sweep),
        status=words.status_words(summary),
        started=files.run.started_utc,
        conditions=conditions(sweep.experiment),
        about=_about(summary),
        answer=first_screen.first_screen(summary),
        sustained_meaning=findings.sustained_meaning(sweep),
        no_inference=table.no_inference(sweep.runs) if sweep.runs < MIN_RUNS else "",
        loads=[sweep.load_words(load) for load in _grid_loads(sweep)],
        servers=[_server(sweep, index, label) for index, label in enumerate(sweep.labels)],
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


def _grid_loads(sweep: Sweep) -> tuple[float, ...]:
    """The load levels of the verdict grid; none if there are too many for its width."""
    return sweep.loads if len(sweep.loads) <= MAX_GRID_LOADS else ()


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


def _server(sweep: Sweep, index: int, label: str) -> ServerRow:
    return ServerRow(
        label=label,
        index=index % len(page.LIGHT),
        sentence=findings.server_sentence(sweep, label),
        marks=[_mark(sweep.at(label, load)) for load in _grid_loads(sweep)],
    )


def _mark(cells: tuple[Cell, ...]) -> Mark:
    if not cells:
        return Mark("none", words.MISSING, words.NOT_MEASURED)
    if any(cell.status == "failed" for cell in cells):
        return Mark("failed", "failed", "the server failed")
    if all(cell.status == "invalid" for cell in cells):
        blamed = words.join_words(sorted({cell.blame for cell in cells}))
        return Mark("invalid", "invalid", f"invalid trial: {blamed}")

    middle = median_upper_ns(cells, 0.99)
    value = words.format_duration_ns(middle) if middle is not None else _other_p99(cells)
    if findings.all_sustained(cells):
        return Mark("kept", value, "sustained", "✓")
    return Mark("behind", value.partition(" (")[0], "not sustained", "✗")


def _other_p99(cells: tuple[Cell, ...]) -> str:
    """The text if the median p99 is unknown: an imprecise p99 from too few requests, or why it is
    not finite."""
    endless = next((cell for cell in cells if cell.upper_ns(0.99) == math.inf), None)
    if endless is not None:
        return endless.quantile_words(0.99)
    usable = [cell for cell in cells if cell.status != "invalid"]
    bounds = [(cell.result.offered_quantiles_ns or {}).get("0.99") for cell in usable]
    ends = [None if one is None or one.high is None else float(one.high) for one in bounds]
    middle = None if None in ends else finite_median(ends)
    if middle is None:
        return cells[0].quantile_words(0.99)
    return words.rough(words.format_duration_ns(middle), is_rough=True)


def _worst(sweep: Sweep) -> str:
    statuses = {cell.status for cell in sweep.cells}
    return next((status for status in ("invalid", "failed", "warn") if status in statuses), "valid")


def _over_runs(summary: Summary) -> OverRuns:
    aggregates = grids.Grid(
        over_runs.aggregate_headings(summary), tuple(over_runs.aggregate_rows(summary))
    )
    return OverRuns(
        forest=_forest(summary.comparisons or ()),
        aggregates=aggregates,
        note=over_runs.aggregate_note(summary),
        comparisons=over_runs.comparison_lines(summary),
    )


def _forest(comparisons: Sequence[Comparison]) -> Chart | None:
    """The comparisons as a chart; None if none has an interval."""
    rows = forest.drawable(comparisons)
    if not rows:
        return None
    numbers = tuple((forest.row_name(entry), *forest.row_numbers(entry)) for entry in rows)
    return Chart(
        "forest",
        "Ratios between servers",
        forest.caption(comparisons),
        forest.READING,
        grids.Grid(forest.HEADINGS, numbers),
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
    captions = (
        (
            findings.response_time_caption(sweep),
            findings.RESPONSE_TIME_READING,
            grids.of_times(sweep, files.loads),
        ),
        (
            findings.goodput_caption(sweep),
            findings.GOODPUT_READING,
            grids.of_columns(sweep, grids.GOODPUT_COLUMNS),
        ),
        (
            findings.resource_caption(sweep),
            findings.RESOURCE_READING,
            grids.of_columns(sweep, (*grids.RESOURCE_COLUMNS, *grids.service_columns(sweep))),
        ),
        (
            findings.spectrum_caption(sweep, sweep.loads),
            findings.SPECTRUM_READING,
            grids.of_spectrum(sweep),
        ),
    )
    charts = [
        Chart(chart.name, chart.label, *words_and_data)
        for chart, words_and_data in zip(drawn.charts, captions, strict=True)
    ]
    return [*charts, breakdown.chart(sweep, drawn.parts)] if drawn.parts else charts
