"""The cells over time: their selection, rounded numbers and captions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from wsgiload.documents.load_report import LoadReport
from wsgiload.documents.page_data import PageService, PageTimeline, PageUses
from wsgiload.report import coincidence, findings, grids, heat, words
from wsgiload.report.cells import Cell, Sweep, conditions
from wsgiload.report.page import Chart
from wsgiload.report.run_files import RunFiles, SampleRow, Series, read_load_report
from wsgiload.report.strip import Busy, Strip, make_strip

MAX_STRIPS = 96
READING = f"{heat.SCALE} {heat.MARKS}"

# All timelines of a page together have about this many points, which limits its size.
_POINTS_OF_A_PAGE = 4_000
_MIN_POINTS, _MAX_POINTS = 24, 120


@dataclass(frozen=True, slots=True)
class ServerStrips:
    """The cells of one server over time."""

    label: str
    charts: tuple[Chart, ...]


def strips_of(sweep: Sweep, files: RunFiles) -> list[Strip]:
    """The cells over time, at most ``MAX_STRIPS``; if there are more cells, only those of the first
    run."""
    chosen = [cell for cell in sweep.cells if cell.id in files.recorded]
    if len(chosen) > MAX_STRIPS:
        first = min(cell.run for cell in sweep.cells)
        chosen = [cell for cell in chosen if cell.run == first]
    chosen = chosen[:MAX_STRIPS]

    series = files.series({cell.id for cell in chosen})
    strips = (
        _strip(cell, series, read_load_report(files.directory, cell.id), len(chosen))
        for cell in chosen
    )
    return [strip for strip in strips if strip is not None]


def _strip(cell: Cell, series: Series, load: LoadReport | None, timelines: int) -> Strip | None:
    """The cell over time, one of ``timelines`` on a page."""
    samples = series.samples.get(cell.id, ())
    strip = make_strip(
        cell,
        series.intervals.get(cell.id, ()),
        samples,
        points_of_each(timelines),
        series.services.get(cell.id),
    )
    return None if strip is None else with_heat(strip, load, samples, timelines)


def with_heat(
    strip: Strip, load: LoadReport | None, samples: Sequence[SampleRow], timelines: int = 1
) -> Strip:
    """The strip with the heatmap of its load, one of ``timelines`` on a page."""
    if load is None:
        return strip
    return replace(strip, heat=heat.make_heat(load, samples, heat.fields_of_each(timelines)))


def drawn(sweep: Sweep, strips: Sequence[Strip]) -> tuple[PageTimeline, ...]:
    """The chart data of these cells."""
    return tuple(
        timeline(strip, sweep.labels.index(strip.cell.label), _name(place))
        for place, strip in enumerate(strips)
    )


def groups_of(sweep: Sweep, strips: Sequence[Strip]) -> list[ServerStrips]:
    """The charts of these cells, by server."""
    charts = [chart_of(strip, sweep, _name(place)) for place, strip in enumerate(strips)]
    pairs = list(zip(charts, strips, strict=True))
    by_label = {
        label: tuple(chart for chart, strip in pairs if strip.cell.label == label)
        for label in sweep.labels
    }
    return [ServerStrips(label, figures) for label, figures in by_label.items() if figures]


def _name(place: int) -> str:
    return f"time-{place}"


def chart_of(strip: Strip, sweep: Sweep, name: str) -> Chart:
    """One cell over time: its title with the conditions and the verdict, and what coincided."""
    cell = strip.cell
    subtitle = f"{conditions(sweep.experiment, cell.result)} · {cell.verdict_words()}"
    sentences = [coincidence.sentence(cell, one) for one in coincidence.fingerprints(cell)]
    if strip.grouped > 1:
        sentences.append(
            f"Each point combines {strip.grouped} intervals: the median of their p50 and the "
            "highest of their p99."
        )
    return Chart(
        name,
        f"{title(cell)}. {subtitle}",
        findings.strip_caption(strip),
        " ".join(sentences),
        grids.of_strip(strip),
        fields=None if strip.heat is None else grids.of_heat(strip.heat),
    )


def points_of_each(timelines: int) -> int:
    """The maximum points of each of this many timelines."""
    share = _POINTS_OF_A_PAGE // max(1, timelines)
    return max(_MIN_POINTS, min(_MAX_POINTS, share))


def timeline(strip: Strip, server: int, name: str) -> PageTimeline:
    """One cell over time; ``name`` is the id of its figure."""
    return PageTimeline(
        name=name,
        label=title(strip.cell),
        server=server,
        length_s=round(strip.length_s, 3),
        middles_s=tuple(round(middle, 3) for middle in strip.middles_s),
        p50_ns=_rounded(strip.p50_ns),
        p99_ns=_rounded(strip.p99_ns),
        max_ns=_rounded(strip.max_ns),
        failed=strip.failed,
        heat=None if strip.heat is None else strip.heat.data(),
        uses=_uses(strip.busy),
        services=tuple(_service(name, busy) for name, busy in strip.services.items()),
        cpu_limit=strip.cpu_limit,
        memory_limit_bytes=strip.cell.memory_limit_bytes,
    )


def title(cell: Cell) -> str:
    """ "waitress at 1,000/s, run 1"."""
    rate = cell.result.rate
    load = words.format_per_s(rate) if rate is not None else f"{cell.load:,.0f} connections"
    return f"{cell.label} at {load}, run {cell.run}"


def _rounded(values: tuple[int | None, ...]) -> tuple[float | None, ...]:
    return tuple(None if value is None else int(float(f"{value:.4g}")) for value in values)


def _service(name: str, busy: Sequence[Busy]) -> PageService:
    return PageService(name=name, ends_s=_ends_s(busy), cores=_cores(busy))


def _ends_s(busy: Sequence[Busy]) -> tuple[float, ...]:
    return tuple(round(one.end_s, 2) for one in busy)


def _cores(busy: Sequence[Busy]) -> tuple[float, ...]:
    return tuple(round(max(0.0, one.cores), 3) for one in busy)


def _uses(busy: Sequence[Busy]) -> PageUses:
    throttled = (one.throttled_ratio for one in busy)
    return PageUses(
        ends_s=_ends_s(busy),
        cores=_cores(busy),
        throttled_ratio=tuple(None if share is None else round(share, 3) for share in throttled),
        memory_bytes=tuple(one.memory_bytes for one in busy),
        listen_queue=tuple(one.listen_queue for one in busy),
    )
