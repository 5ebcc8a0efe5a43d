"""The page of a capacity search: the answer, each server's search with its trials, warnings, and
each trial over time. Offline, like the report of a sweep."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from wsgiload.documents.capacity import CapacityResult
from wsgiload.documents.codec import read, to_plain
from wsgiload.documents.page_data import PageTimeline
from wsgiload.errors import UsageError
from wsgiload.report import capacity, command_line, page, search_chart, timelines
from wsgiload.report.answer_box import AnswerBox
from wsgiload.report.capacity import NOTE, capacity_screen
from wsgiload.report.cells import read_sweep
from wsgiload.report.page import Download, download, facts
from wsgiload.report.run_files import RunFiles, read_load_reports, read_run, read_run_info
from wsgiload.report.timelines import ServerStrips

NAME = "capacity.json"
_DOWNLOADS = (
    (NAME, "application/json"),
    ("summary.json", "application/json"),
    ("run.json", "application/json"),
    ("intervals.csv", "text/csv"),
    ("resources.csv", "text/csv"),
)
_CONDITIONS = ("slo", "arrivals", "keepalive", "duration_s", "confirm_duration_s", "width", "url")


@dataclass(frozen=True, slots=True)
class CapacityPage:
    """The data of ``capacity.html.j2``."""

    title: str
    status: str
    started: str
    conditions: str
    answer: AnswerBox
    note: str
    charts: list[page.Chart]
    remarks: list[str]
    strips: list[ServerStrips]
    strips_left_out: int
    over_time_reading: str
    settings: list[tuple[str, str]]
    plan: list[tuple[str, str]]
    host: list[tuple[str, str]]
    downloads: list[Download]
    palette: page.Palette


def render(run_dir: Path) -> str:
    """The page as HTML."""
    document = read(CapacityResult, run_dir / NAME)
    files = _files_of(run_dir)
    over_time = _over_time(files)
    cells = [trial.cell for server in document.servers for trial in server.trials]
    loads = read_load_reports(run_dir, cells)

    data = msgspec.structs.replace(
        page.nothing_drawn(tuple(server.server for server in document.servers)),
        timelines=over_time.drawn,
        searches=search_chart.searches(document.servers, document.slo, loads),
    )
    run = read_run_info(run_dir)
    shown = CapacityPage(
        title=_title(document),
        status=_status_words(document),
        started=run.started_utc,
        conditions=capacity.conditions(document),
        answer=capacity_screen(document, None if files is None else files.summary),
        note=NOTE,
        charts=search_chart.charts(document.servers, document.slo, loads),
        remarks=[line for server in document.servers for line in capacity.remarks_of(server)],
        strips=over_time.groups,
        strips_left_out=over_time.left_out,
        over_time_reading=timelines.READING,
        settings=[] if files is None else command_line.settings_of(read_sweep(files.summary)),
        plan=facts({name: to_plain(document)[name] for name in _CONDITIONS}),
        host=facts(to_plain(run.host)),
        downloads=[
            download(run_dir / name, kind)
            for name, kind in _DOWNLOADS
            if (run_dir / name).is_file()
        ],
        palette=page.palette(),
    )
    return page.render("capacity.html.j2", shown, data)


@dataclass(frozen=True, slots=True)
class _OverTime:
    """The trials over time, as far as recorded."""

    drawn: tuple[PageTimeline, ...]
    groups: list[ServerStrips]
    left_out: int


def _files_of(run_dir: Path) -> RunFiles | None:
    """The files of the run; None for searches of a URL, which have no summary."""
    try:
        return read_run(run_dir)
    except UsageError:
        return None


def _over_time(files: RunFiles | None) -> _OverTime:
    if files is None:
        return _OverTime((), [], 0)
    sweep = read_sweep(files.summary)
    strips = timelines.strips_of(sweep, files)
    recorded = sum(bool(files.intervals.get(cell.id)) for cell in sweep.cells)
    drawn = timelines.drawn(sweep, strips)
    return _OverTime(drawn, timelines.groups_of(sweep, strips), recorded - len(strips))


def _title(document: CapacityResult) -> str:
    count = len(document.servers)
    who = document.servers[0].server if count == 1 else f"{count} servers"
    return f"Capacity of {document.url or who}"


def _status_words(document: CapacityResult) -> str:
    return "" if document.status == "complete" else f"{document.status}: the search is incomplete"
