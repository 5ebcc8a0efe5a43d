"""The page of a capacity search: the answer, each server's search with its trials, warnings, and
each trial over time. Offline, like the report of a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from wsgiload.analysis.threshold import QUANTILES, Threshold, parse_threshold
from wsgiload.documents.capacity import CapacityResult, CapacityTrial, ServerCapacity
from wsgiload.documents.codec import read, to_plain
from wsgiload.documents.load_report import LoadReport
from wsgiload.documents.page_data import PageObjective, PageSearch, PageTimeline, PageTrial
from wsgiload.errors import UsageError
from wsgiload.report import capacity, command_line, page, timelines, words
from wsgiload.report.answer_box import AnswerBox
from wsgiload.report.capacity import NOTE, bracket_words, capacity_screen, rate_words
from wsgiload.report.cells import read_sweep
from wsgiload.report.grids import Grid
from wsgiload.report.page import Chart, Download, download, facts
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
_CONDITIONS = ("slo", "arrivals", "keepalive", "budget_s", "width", "url")


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
        searches=searches(document.servers, document.slo, loads),
    )
    run = read_run_info(run_dir)
    shown = CapacityPage(
        title=_title(document),
        status=_status_words(document),
        started=run.started_utc,
        conditions=capacity.conditions(document),
        answer=capacity_screen(document, None if files is None else files.summary),
        note=NOTE,
        charts=charts(document.servers, document.slo, loads),
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
    recorded = sum(cell.id in files.recorded for cell in sweep.cells)
    drawn = timelines.drawn(sweep, strips)
    return _OverTime(drawn, timelines.groups_of(sweep, strips), recorded - len(strips))


def _title(document: CapacityResult) -> str:
    count = len(document.servers)
    who = document.servers[0].server if count == 1 else f"{count} servers"
    return f"Capacity of {document.url or who}"


def _status_words(document: CapacityResult) -> str:
    return "" if document.status == "complete" else f"{document.status}: the search is incomplete"


_OUTCOMES = {True: "met", False: "missed", None: "inconclusive"}
READING = (
    "Each mark is one trial; faint marks are trials that were repeated. The shaded band is the "
    "bracket, the error bar is the 95 % confidence interval of the capacity, the solid line is the "
    "capacity, and the dashed line is the objective."
)

Loads = Mapping[str, LoadReport]


def searches(
    servers: Sequence[ServerCapacity], slo: Sequence[str], loads: Loads
) -> tuple[PageSearch, ...]:
    """The chart data of each server's search."""
    return tuple(
        _search(server, [parse_threshold(text) for text in slo], loads, _name(place))
        for place, server in enumerate(servers)
        if any(trial.rate_per_s is not None for trial in server.trials)
    )


def charts(servers: Sequence[ServerCapacity], slo: Sequence[str], loads: Loads) -> list[Chart]:
    """The chart of each server, with the table of its trials."""
    thresholds = [parse_threshold(text) for text in slo]
    return [
        Chart(
            _name(place),
            _label(server),
            _caption(server),
            READING,
            _grid(server, thresholds, loads),
        )
        for place, server in enumerate(servers)
    ]


def _name(place: int) -> str:
    return f"search-{place}"


def _label(server: ServerCapacity) -> str:
    trials = words.plural(len(server.trials), "trial")
    return f"Capacity search on {server.server}. {trials}, in the order in which they ran"


def _caption(server: ServerCapacity) -> str:
    judged = [trial for trial in server.trials if trial.rate_per_s is not None]
    counts = [
        f"{count} {name}"
        for met, name in _OUTCOMES.items()
        if (count := sum(trial.met is met for trial in judged))
    ]
    result = (
        f"capacity {rate_words(server)}"
        if server.rate_per_s is not None
        else "no capacity was found"
    )
    bracket = bracket_words(server.bracket)
    known = "" if bracket == words.MISSING else f", bracket {bracket}"
    trials = words.plural(len(judged), "open-loop trial")
    return f"{trials}{': ' if counts else ''}{', '.join(counts)}; {result}{known}."


def _search(
    server: ServerCapacity, thresholds: Sequence[Threshold], loads: Loads, name: str
) -> PageSearch:
    interval = server.interval_95
    is_bounded = interval is not None and None not in interval
    return PageSearch(
        name=name,
        label=_label(server),
        conditions=tuple(_condition(threshold) for threshold in thresholds),
        trials=tuple(
            _trial(number, trial, thresholds, loads.get(trial.cell))
            for number, trial in enumerate(server.trials, start=1)
            if trial.rate_per_s is not None
        ),
        bracket=server.bracket,
        interval_95=(interval[0] or 0.0, interval[1] or 0.0) if interval and is_bounded else None,
        rate_per_s=server.rate_per_s,
    )


def _condition(threshold: Threshold) -> PageObjective:
    return PageObjective(
        title=_heading(threshold),
        unit="ns" if threshold.figure in QUANTILES else "ratio",
        limit=threshold.limit,
        label=threshold.text,
    )


def _heading(threshold: Threshold) -> str:
    return threshold.figure if threshold.figure in QUANTILES else "failed"


def _trial(
    number: int, trial: CapacityTrial, thresholds: Sequence[Threshold], load: LoadReport | None
) -> PageTrial:
    return PageTrial(
        number=number,
        phase=words.SEARCH_PHASES[trial.stage],
        rate_per_s=trial.rate_per_s or 0.0,
        outcome="inconclusive" if trial.met is None else "met" if trial.met else "missed",
        is_repeated=trial.discarded,
        values=tuple(_value(threshold, load) for threshold in thresholds),
        texts=tuple(_text(threshold, load) for threshold in thresholds),
    )


def _value(threshold: Threshold, load: LoadReport | None) -> float | None:
    """The figure's value; for a quantile its upper bound, as in the objective."""
    if load is None:
        return None
    quantile = QUANTILES.get(threshold.figure)
    if quantile is None:
        return words.failed_ratio(load.outcomes)
    bounds = (load.offered_quantiles_ns or {}).get(quantile)
    return None if bounds is None else bounds.high


def _text(threshold: Threshold, load: LoadReport | None) -> str:
    if load is None:
        return words.MISSING
    quantile = QUANTILES.get(threshold.figure)
    if quantile is None:
        return words.format_ratio(words.failed_ratio(load.outcomes))
    bounds = (load.offered_quantiles_ns or {}).get(quantile)
    return words.format_bounds(bounds, float(quantile), load.outcomes)


def _grid(server: ServerCapacity, thresholds: Sequence[Threshold], loads: Loads) -> Grid:
    headings = ("trial", "phase", "outcome", "reason", "rate")
    rows = tuple(
        (
            str(number),
            words.SEARCH_PHASES[trial.stage],
            _outcome_words(trial),
            trial.reason,
            _load_words(trial),
            *(_text(threshold, loads.get(trial.cell)) for threshold in thresholds),
        )
        for number, trial in enumerate(server.trials, start=1)
    )
    return Grid((*headings, *(_heading(one) for one in thresholds)), rows, names=4)


def _load_words(trial: CapacityTrial) -> str:
    if trial.rate_per_s is not None:
        return words.format_per_s(trial.rate_per_s)
    return words.plural(trial.connections or 0, "connection")


def _outcome_words(trial: CapacityTrial) -> str:
    if trial.stage == "initial":
        return words.MISSING
    return f"{_OUTCOMES[trial.met]}{', repeated' if trial.discarded else ''}"
