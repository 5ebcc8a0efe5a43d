"""The page of one load: the answer, response times by percentile and over time, outcomes, and
validity. Offline, like the report of a sweep."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec

from wsgiload.documents.codec import encode_bytes
from wsgiload.documents.load_plan import KeepaliveLimit
from wsgiload.documents.load_report import LoadReport
from wsgiload.documents.page_data import PageTimeline
from wsgiload.documents.summary import ExperimentFacts, Summary
from wsgiload.findings.alarms import alarms_of_load
from wsgiload.report import findings, grids, heat, page, panels, timelines, words
from wsgiload.report.answer_box import AnswerBox
from wsgiload.report.cells import Sweep, conditions, read_sweep
from wsgiload.report.load_screen import (
    NOTE,
    REQUEST_HEADINGS,
    load_screen,
    offered_words,
    open_loop,
    request_rows,
    shown_requests,
)
from wsgiload.report.page import MAX_DOWNLOAD_BYTES, Download, facts
from wsgiload.report.run_files import IntervalRow, SampleRow, digest_of
from wsgiload.report.strip import Strip, make_strip
from wsgiload.results.load_attempts import cell_of_load
from wsgiload.units import NS_PER_S

# Limits the size of the page.
MAX_REQUESTS = 200
_NAME = "load"


@dataclass(frozen=True, slots=True)
class LoadPage:
    """The data of ``load.html.j2``."""

    title: str
    conditions: str
    answer: AnswerBox
    note: str
    charts: list[page.Chart]
    over_time: page.Chart | None
    requests: grids.Grid
    requests_note: str
    errors: grids.Grid
    verdict: str
    validity_class: str
    findings: list[str]
    not_checked: list[tuple[str, str]]
    generator: list[str]
    plan: list[tuple[str, str]]
    raw: Download
    palette: page.Palette


def render(report: LoadReport, samples: Sequence[SampleRow] = ()) -> str:
    """The page as HTML; ``samples`` are those of an attached server."""
    sweep = _sweep_of(report)
    strip = make_strip(sweep.cells[0], _intervals(report), samples)
    if strip is not None:
        strip = timelines.with_heat(strip, report, samples)
    drawn = tuple(chart for chart in (panels.spectrum_chart(sweep),) if chart.panels)
    data = msgspec.structs.replace(
        page.nothing_drawn(sweep.labels), charts=drawn, timelines=_timelines(strip)
    )
    requests = tuple(request_rows(report, MAX_REQUESTS, MAX_REQUESTS))
    note = shown_requests(report, len(requests))
    shown = LoadPage(
        title=f"Load on {report.plan.url}",
        conditions=conditions(sweep.experiment),
        answer=load_screen(report),
        note=NOTE,
        charts=[
            page.Chart(
                chart.name,
                chart.label,
                findings.spectrum_caption(sweep, sweep.loads),
                findings.SPECTRUM_READING,
                grids.of_spectrum(sweep),
                chart.absent,
            )
            for chart in drawn
        ],
        over_time=None if strip is None else _over_time(strip, sweep),
        requests=grids.Grid(REQUEST_HEADINGS, requests),
        requests_note=note and f"{note[0].upper()}{note[1:]}.",
        errors=grids.of_errors(sweep, {_NAME: digest_of(report)}),
        verdict=words.verdict_words(report.verdict),
        validity_class=report.verdict.status,
        findings=list(_findings(report)),
        not_checked=[(one.check, one.reason) for one in report.not_checked],
        generator=list(_generator(report)),
        plan=_plan(report),
        raw=_raw(report),
        palette=page.palette(),
    )
    return page.render("load.html.j2", shown, data)


def _sweep_of(report: LoadReport) -> Sweep:
    """The load as the only cell of a sweep."""
    cell = cell_of_load(report, _NAME, server=report.plan.url)
    schedule, keepalive = report.plan.load.open, report.plan.keepalive
    experiment = ExperimentFacts(
        name=_NAME,
        app=None,
        path=None,
        rates=None if cell.rate is None else (cell.rate,),
        connections=None if cell.connections is None else (cell.connections,),
        arrivals=None if schedule is None else schedule.arrivals,
        on_busy=None if schedule is None else schedule.on_busy,
        keepalive=keepalive.requests if isinstance(keepalive, KeepaliveLimit) else keepalive,
        sessions=len(report.plan.sessions) or None,
        duration_s=report.measured_ns / NS_PER_S,
        warmup_s=report.plan.phases.warmup_ns / NS_PER_S,
        runs=1,
        cpus=None,
        memory_bytes=None,
        pids=None,
        server_cpus=None,
        client_cpus=None,
        servers=(report.plan.url,),
    )
    summary = Summary(
        schema_version=1,
        status="complete",
        experiment=experiment,
        order=(_NAME,),
        seed=report.plan.seed,
        cells=(cell,),
    )
    return read_sweep(summary)


def _intervals(report: LoadReport) -> list[IntervalRow]:
    return [
        IntervalRow(
            start_ns=one.start_ns,
            length_ns=one.length_ns,
            failed=one.failed,
            p50_ns=one.p50_ns,
            p99_ns=one.p99_ns,
            max_ns=one.max_ns,
        )
        for one in report.intervals
    ]


def _timelines(strip: Strip | None) -> tuple[PageTimeline, ...]:
    return () if strip is None else (timelines.timeline(strip, 0, "time-0"),)


def _over_time(strip: Strip, sweep: Sweep) -> page.Chart:
    chart = timelines.chart_of(strip, sweep, "time-0")
    return replace(chart, reading=f"{chart.reading} {heat.SCALE}".strip())


def _findings(report: LoadReport) -> Iterator[str]:
    """Every finding, alarm and diagnostic."""
    yield from (words.reason_words(reason) for reason in report.verdict.reasons)
    yield from (words.reason_words(alarm.reason()) for alarm in alarms_of_load(report))
    yield from (f"{one.message.strip()} ({one.check})" for one in report.diagnostics)


def _generator(report: LoadReport) -> Iterator[str]:
    """How the generator performed."""
    if report.client is None:
        return
    yield f"Generator: {words.client_words(report.client)}."
    pacing = words.pacing_words(report.client)
    if pacing is not None and open_loop(report) is not None:
        yield f"Generator: {pacing}."


def _plan(report: LoadReport) -> list[tuple[str, str]]:
    """The parts of the plan that fit into a list; the raw data contains all of it."""
    plan = report.plan
    phases = plan.phases
    values = {
        "url": plan.url,
        "unix_socket": plan.unix_socket,
        "method": plan.method,
        "load": offered_words(report),
        "warmup_s": phases.warmup_ns / NS_PER_S,
        "measured_s": report.measured_ns / NS_PER_S,
        "cooldown_s": phases.cooldown_ns / NS_PER_S,
        "timeout_s": plan.timeout_ns / NS_PER_S,
        "targets": len(plan.targets) or None,
        "sessions": len(plan.sessions) or None,
        "http_version": plan.http_version,
        "threads": plan.threads,
        "seed": plan.seed,
        "tool": f"{report.tool.name} {report.tool.version}",
    }
    return facts({name: value for name, value in values.items() if value is not None})


def _raw(report: LoadReport) -> Download:
    """The whole report, embedded in the page if it is small."""
    text = encode_bytes(report)
    size = words.format_bytes(len(text))
    if len(text) > MAX_DOWNLOAD_BYTES:
        return Download("load.json", "", f"{size}; --json FILE writes it")
    data = base64.b64encode(text).decode("ascii")
    return Download("load.json", f"data:application/json;base64,{data}", size)
