"""The data of the charts over the load level: runs, medians, bands and limits.

It draws no conclusions; ``findings`` writes the captions. A missing value is never a number: it is
drawn on the rail above the chart or omitted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wsgiload.analysis.absence import enough_requests
from wsgiload.analysis.attempts import is_disturbed
from wsgiload.documents.page_data import (
    PageChart,
    PageLine,
    PagePanel,
    PageRun,
    PageSeries,
    Status,
    Unit,
)
from wsgiload.report import words
from wsgiload.report.cells import HEADLINE, Cell, Sweep, conditions, median_of, median_upper_ns
from wsgiload.report.findings import why_absent, why_not_throttled

QUANTILES = (0.5, 0.9, 0.95, 0.99, 0.999, 0.9999)
HEADLINE_QUANTILES = (0.5, 0.9, 0.95, 0.99, 0.999)
# From this ratio of the highest to the lowest load level, the axis is logarithmic, because a linear
# one would crowd the low levels.
_LOG_RATIO = 20

Number = Callable[[Cell], float | None]


@dataclass(frozen=True, slots=True)
class _Figure:
    """A figure of a cell with the properties of its panel."""

    name: str
    title: str
    unit: Unit
    number: Number
    otherwise: str = words.NOT_MEASURED
    limit: float | None = None
    has_equality: bool = False


def all_charts(sweep: Sweep) -> tuple[PageChart, ...]:
    """The charts of a page, in their order, without those that would be empty."""
    charts = (
        response_time_chart(sweep),
        goodput_chart(sweep),
        resource_chart(sweep),
        spectrum_chart(sweep),
    )
    return tuple(chart for chart in charts if chart.panels)


def response_time_chart(sweep: Sweep) -> PageChart:
    """Response time against load, one quantile at a time: first p99 or the highest below it that
    the data support."""
    panels = [_quantile_panel(sweep, quantile) for quantile in HEADLINE_QUANTILES]
    known = {one.name for one, reason in panels if reason is None}
    names = (words.quantile_name(one) for one in HEADLINE_QUANTILES if one <= HEADLINE)
    chosen = [name for name in names if name in known]
    return _chart(
        "response-time",
        _label("Response time by " + short_axis(sweep), sweep),
        panels,
        choice=("quantile", chosen[-1] if chosen else ""),
    )


def goodput_chart(sweep: Sweep) -> PageChart:
    """Correct responses per second against load, and the share of requests without one."""
    # Sessions have several requests, so goodput cannot equal the rate of sessions.
    has_equality = sweep.open_loop and not sweep.is_of_sessions
    return _figures(
        sweep,
        "goodput",
        "Goodput by " + short_axis(sweep),
        _Figure(
            "goodput",
            "correct responses per second",
            "per_s",
            lambda cell: cell.goodput_per_s,
            has_equality=has_equality,
        ),
        _Figure(
            "failed",
            "share of scheduled requests that failed",
            "ratio",
            lambda cell: words.failed_ratio(cell.outcomes),
        ),
    )


def resource_chart(sweep: Sweep) -> PageChart:
    """CPU, memory, throttling and accept queue against load, with the enforced limits."""
    return _figures(
        sweep,
        "resources",
        "Server resources by " + short_axis(sweep),
        _Figure(
            "cpu",
            "CPU cores used (mean)",
            "cores",
            lambda cell: cell.used.cpu_cores_mean,
            limit=sweep.cpu_limit,
        ),
        _Figure(
            "memory",
            "memory (peak)",
            "bytes",
            lambda cell: cell.used.memory_peak_bytes,
            limit=sweep.memory_limit_bytes,
        ),
        _Figure(
            "throttled",
            "CPU periods throttled",
            "ratio",
            lambda cell: cell.used.throttled_period_ratio,
            otherwise=why_not_throttled(sweep.cells),
        ),
        _Figure(
            "queue",
            "accept queue (peak)",
            "count",
            lambda cell: cell.used.listen_queue_peak,
        ),
        *(_service_figure(name) for name in sweep.services),
    )


def _service_figure(name: str) -> _Figure:
    """CPU use of a supporting service."""
    return _Figure(
        f"service-{name}",
        f"CPU cores used by {name} (mean)",
        "cores",
        lambda cell: used.resources.cpu_cores_mean if (used := cell.service(name)) else None,
    )


def spectrum_chart(sweep: Sweep) -> PageChart:
    """Response time against quantile on a 1/(1-p) axis, one load level at a time."""
    panels = [_spectrum_panel(sweep, load) for load in sweep.loads]
    names = [one.name for one, reason in panels if reason is None]
    return _chart(
        "spectrum",
        _label("Response time by percentile", sweep),
        panels,
        choice=("load", names[-1] if names else ""),
    )


def short_axis(sweep: Sweep) -> str:
    """The name of the load axis in a title."""
    if not sweep.open_loop:
        return "number of connections"
    return "offered session rate" if sweep.is_of_sessions else "offered rate"


def _label(title: str, sweep: Sweep) -> str:
    return f"{title}. {conditions(sweep.experiment)}"


# A panel, and why it is empty; None if it is not.
_Panel = tuple[PagePanel, str | None]


def _figures(sweep: Sweep, name: str, title: str, *figures: _Figure) -> PageChart:
    return _chart(name, _label(title, sweep), [_number_panel(sweep, one) for one in figures])


def _chart(
    name: str, label: str, panels: Sequence[_Panel], choice: tuple[str | None, str] = (None, "")
) -> PageChart:
    """The chart with the panels that are not empty. ``choice``: what the reader selects, and what
    is selected first."""
    return PageChart(
        name=name,
        label=label,
        choice=choice[0],
        chosen=choice[1],
        panels=tuple(panel for panel, reason in panels if reason is None),
        absent=tuple(f"{panel.title}: {reason}" for panel, reason in panels if reason is not None),
    )


def _panel(sweep: Sweep, figure: _Figure, series: tuple[PageSeries, ...]) -> _Panel:
    """A panel over the measured load levels."""
    loads = sweep.loads
    is_empty = not any(
        run.value is not None or run.is_endless for one in series for run in one.runs
    )
    limit = figure.limit
    panel = PagePanel(
        name=figure.name,
        title=figure.title,
        unit=figure.unit,
        x=loads,
        x_labels=tuple(words.format_rate(load) for load in loads),
        x_title=sweep.axis_label,
        is_x_log=bool(loads) and loads[0] > 0 and loads[-1] / loads[0] > _LOG_RATIO,
        can_be_log=figure.unit == "ns",
        has_equality=figure.has_equality,
        lines=() if limit is None else (PageLine(value=limit, label="limit"),),
        series=series,
    )
    return panel, figure.otherwise if is_empty else None


def _number_panel(sweep: Sweep, figure: _Figure) -> _Panel:
    series = tuple(
        _number_series(sweep, place, figure.number) for place in range(len(sweep.labels))
    )
    return _panel(sweep, figure, series)


def _number_series(sweep: Sweep, place: int, number: Number) -> PageSeries:
    """Every run, with the median and range of the usable ones at each load level."""
    label = sweep.labels[place]
    at = [sweep.at(label, load) for load in sweep.loads]
    return PageSeries(
        server=place,
        medians=tuple(median_of(cells, number) for cells in at),
        bands=tuple(_range(cells, number) for cells in at),
        runs=tuple(
            _run(cell, sweep.loads.index(cell.load), value)
            for cell in sweep.of(label)
            if (value := number(cell)) is not None
        ),
    )


def _range(cells: Sequence[Cell], number: Number) -> tuple[float, float] | None:
    known = [value for cell in cells if cell.usable and (value := number(cell)) is not None]
    return (min(known), max(known)) if len(known) > 1 else None


def _run(cell: Cell, place: int, value: float) -> PageRun:
    return PageRun(
        x=place,
        run=cell.run,
        status=_status(cell),
        value=value,
        is_endless=False,
        low=None,
        interval=None,
    )


def _status(cell: Cell) -> Status:
    if cell.status == "failed" or not cell.usable:
        return "failed" if cell.status == "failed" else "invalid"
    return "disturbed" if is_disturbed(cell.result) else "valid"


def _quantile_panel(sweep: Sweep, quantile: float) -> _Panel:
    """One quantile of every run at every load level; if no run has it, the required requests."""
    counted = any(enough_requests(cell.scheduled, quantile) for cell in sweep.cells)
    name = words.quantile_name(quantile)
    figure = _Figure(
        name,
        f"{name} response time",
        "ns",
        lambda cell: cell.upper_ns(quantile),
        otherwise=words.NOT_MEASURED if counted else words.needed_requests(quantile),
    )
    series = tuple(_quantile_series(sweep, place, quantile) for place in range(len(sweep.labels)))
    return _panel(sweep, figure, series)


def _quantile_series(sweep: Sweep, place: int, quantile: float) -> PageSeries:
    label = sweep.labels[place]
    at = [sweep.at(label, load) for load in sweep.loads]
    runs = (_quantile_run(cell, sweep.loads.index(cell.load), quantile) for cell in sweep.of(label))
    return PageSeries(
        server=place,
        medians=tuple(median_upper_ns(cells, quantile) for cells in at),
        bands=tuple(_quantile_band(cells, quantile) for cells in at),
        runs=tuple(run for run in runs if run.value is not None or run.is_endless),
    )


def _quantile_run(cell: Cell, place: int, quantile: float) -> PageRun:
    upper, low = cell.upper_ns(quantile), cell.low_ns(quantile)
    is_endless = upper is not None and math.isinf(upper)
    return PageRun(
        x=place,
        run=cell.run,
        status=_status(cell),
        value=None if is_endless else upper,
        is_endless=is_endless,
        low=low if low != upper and cell.status != "failed" else None,
        interval=interval_ns(cell, quantile),
    )


def interval_ns(cell: Cell, quantile: float) -> tuple[int, int | None] | None:
    """The 95 % interval of a quantile over all scheduled requests within one run."""
    uncertainty = cell.result.uncertainty
    if uncertainty is None or cell.bounds(quantile) is None:
        return None
    known = uncertainty.offered_quantiles_ns.get(f"{quantile:g}")
    return None if known is None else known.interval_95_ns


def _quantile_band(cells: Sequence[Cell], quantile: float) -> tuple[float, float] | None:
    """From the lowest to the highest bound of the usable runs' intervals. A run without an interval
    counts with its value."""
    lows, highs = [], []
    for cell in cells:
        upper, interval = cell.upper_ns(quantile), interval_ns(cell, quantile)
        if not cell.usable or upper is None:
            continue
        low, high = interval or (upper, upper)
        lows.append(min(low, upper))
        highs.append(math.inf if high is None else max(high, upper))
    if not lows or math.isinf(max(highs)) or min(lows) == max(highs):
        return None
    return (min(lows), max(highs))


def _spectrum_panel(sweep: Sweep, load: float) -> _Panel:
    lines = [_spectrum(sweep.at(label, load)) for label in sweep.labels]
    longest = max((len(points) for points in lines), default=0)
    shown = QUANTILES[:longest]
    series = tuple(
        PageSeries(
            server=place,
            medians=(*points, *[None] * (longest - len(points))),
            bands=(None,) * longest,
            runs=(),
        )
        for place, points in enumerate(lines)
    )
    panel = PagePanel(
        name=words.format_rate(load),
        title=f"at {sweep.load_words(load)}",
        unit="ns",
        x=tuple(1 / (1 - quantile) for quantile in shown),
        x_labels=tuple(words.quantile_name(quantile) for quantile in shown),
        x_title="quantile p, on a scale of 1/(1−p)",
        is_x_log=True,
        can_be_log=True,
        has_equality=False,
        lines=(),
        series=series,
    )
    return panel, None if longest else f"no quantile is known ({_why_no_quantile(sweep, load)})"


def _why_no_quantile(sweep: Sweep, load: float) -> str:
    cells = [cell for cell in sweep.cells if cell.load == load]
    return why_absent(cells, QUANTILES[0])


def _spectrum(cells: tuple[Cell, ...]) -> list[float]:
    """The quantiles of one server at one load level, up to the first without a finite value."""
    points: list[float] = []
    for quantile in QUANTILES:
        value = median_upper_ns(cells, quantile) if any(cell.usable for cell in cells) else None
        if value is None:
            break
        points.append(value)
    return points
