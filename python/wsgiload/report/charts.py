"""The charts of the report, each as SVG text.

Draws what it is given and concludes nothing; the sentences under the charts are made in ``findings``. A value
that does not exist is not drawn as a number: it stands on the rail at the top, or is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wsgiload.report import svg, words
from wsgiload.report.cells import Cell, Sweep, conditions, lookup, median_upper_ns
from wsgiload.report.strip import Strip
from wsgiload.report.words import Json

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEADLINE_QUANTILES = (0.5, 0.99, 0.999)
SPECTRUM_QUANTILES = (0.5, 0.9, 0.95, 0.99, 0.999, 0.9999)
MOST_SPECTRUM_PANELS = 3

_LEFT_INCHES, _RIGHT_INCHES = 0.72, 0.12
_RAIL_SHARE = 0.10
_DODGE_POINTS = 7.0


@dataclass(frozen=True, slots=True)
class Limits:
    """The vertical range of a logarithmic axis, and where the rail above it lies."""

    low: float
    high: float
    top: float

    @property
    def rail(self) -> float:
        return math.sqrt(self.high * self.top)


def response_time_chart(sweep: Sweep) -> str:
    """p50, p99 and p99.9 response time against load: runs as dots, medians as lines, failures on a rail."""
    with svg.settings():
        figure, panels = _panels(sweep, [words.quantile_name(quantile) for quantile in HEADLINE_QUANTILES])
        values = [cell.upper_ns(quantile) for cell in sweep.cells for quantile in HEADLINE_QUANTILES]
        values += [lookup(cell.bounds(quantile), "low") for cell in sweep.cells for quantile in HEADLINE_QUANTILES]
        limits = _limits(values, rail=any(value is not None and math.isinf(value) for value in values))
        for axes, quantile in zip(panels, HEADLINE_QUANTILES, strict=True):
            _log_duration_axis(axes, limits)
            _draw_rail(axes, limits, named=axes is panels[0])
            _draw_quantile(axes, sweep, quantile, limits)
        panels[0].set_ylabel("response time (log)")
        return _finish(figure, "response-time", "Response time against " + _short_axis(sweep), sweep)


def goodput_chart(sweep: Sweep) -> str:
    """Correct answers per second against load, and the share of requests that got none."""
    with svg.settings():
        titles = ["correct answers per second", "share of offered requests not answered correctly"]
        figure, (answered, failed) = _panels(sweep, titles, shared=False)
        # With sessions the rate is theirs, and answers are of requests.
        if sweep.open_loop and sweep.loads and not sweep.is_of_sessions:
            answered.axline((0, 0), slope=1, color=svg.MUTED, linewidth=0.8, dashes=(4, 3), zorder=1)
            answered.annotate(
                "achieved = offered",
                (sweep.loads[-1], sweep.loads[-1]),
                (-6, 5),
                fontsize=7,
                color=svg.MUTED,
                textcoords="offset points",
                ha="right",
            )
        _draw_numbers(answered, sweep, lambda cell: cell.goodput_per_s)
        _draw_numbers(failed, sweep, _failed_percent)
        _from_zero(answered)
        _from_zero(failed, least_top=1.0)
        answered.yaxis.set_major_formatter(lambda value, _: words.format_rate(value))
        failed.yaxis.set_major_formatter(lambda value, _: f"{value:g} %")
        return _finish(figure, "goodput", "Achieved rate (goodput) against " + _short_axis(sweep), sweep)


def resource_chart(sweep: Sweep) -> str:
    """CPU, memory and throttling of the server's control group against load, with its limits."""
    from matplotlib.ticker import MaxNLocator

    with svg.settings():
        titles = ["CPU cores in use (mean)", "memory (peak)", "CPU periods throttled"]
        figure, (cpu, memory, throttled) = _panels(sweep, titles, shared=False)
        _draw_numbers(cpu, sweep, lambda cell: cell.resource("cpu_cores_mean"))
        _draw_numbers(memory, sweep, _memory_mib)
        _draw_numbers(throttled, sweep, _throttled_percent)
        memory_limit = sweep.experiment.get("memory_bytes")
        _limit_line(cpu, sweep.experiment.get("cpus"), "limit")
        _limit_line(memory, None if memory_limit is None else memory_limit / (1 << 20), "limit")
        for axes in (cpu, memory, throttled):
            _from_zero(axes, least_top=1.0)
        memory.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 1.28, 2.56, 5.12, 10]))
        memory.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f} MiB")
        throttled.yaxis.set_major_formatter(lambda value, _: f"{value:g} %")
        return _finish(figure, "resources", "Resources of the server against " + _short_axis(sweep), sweep)


def spectrum_loads(sweep: Sweep) -> tuple[float, ...]:
    """The loads that get a panel in the spectrum: the lowest, the middle and the highest."""
    loads = sweep.loads
    if len(loads) <= MOST_SPECTRUM_PANELS:
        return loads
    return (loads[0], loads[(len(loads) - 1) // 2], loads[-1])


def spectrum_chart(sweep: Sweep) -> str:
    """Response time at each quantile, spread by 1/(1-p), one panel per load."""
    with svg.settings():
        loads = spectrum_loads(sweep)
        figure, panels = _panels(sweep, [f"at {sweep.load_words(load)}" for load in loads], by_load=False)
        lines = {(label, load): _spectrum(sweep.at(label, load)) for label in sweep.labels for load in loads}
        limits = _limits((value for points in lines.values() for _, value in points), rail=False)
        for axes, load in zip(panels, loads, strict=True):
            _log_duration_axis(axes, limits)
            _quantile_axis(axes, max((quantile for points in lines.values() for quantile, _ in points), default=0.99))
            for index, label in enumerate(sweep.labels):
                points = lines[label, load]
                style = svg.series_style(index)
                axes.plot(
                    [1 / (1 - quantile) for quantile, _ in points],
                    [value for _, value in points],
                    linewidth=1.3,
                    markersize=3.6,
                    **style,
                )
        if panels:
            panels[0].set_ylabel("response time (log)")
        return _finish(figure, "spectrum", "Percentile spectrum of response time", sweep)


def strip_chart(strip: Strip, experiment: Json, name: str) -> str:
    """One cell over time: response time per interval above, CPU and throttling on the same clock beneath."""
    with svg.settings():
        figure = svg.new_figure(2.75)
        grid = figure.add_gridspec(2, 1, height_ratios=(3, 2), hspace=0.2, left=0.07, right=0.93, top=0.83, bottom=0.14)
        times, busy = figure.add_subplot(grid[0]), figure.add_subplot(grid[1])
        _draw_interval_times(times, strip)
        _draw_busy(busy, strip)
        for axes in (times, busy):
            axes.set_xlim(0, strip.length_s)
            axes.grid(axis="x", visible=False)
        times.tick_params(labelbottom=False)
        busy.set_xlabel("seconds since the first interval, by intended send")
        cell = strip.cell
        title = f"{cell.label} at {_load_text(cell)}, run {cell.run}"
        _title(figure, title, conditions(experiment, cell.raw) + f" · {cell.verdict_words()}", 2.75)
        return svg.to_svg(figure, name, f"{title}: response time, CPU and throttling over time")


def _load_text(cell: Cell) -> str:
    rate = cell.raw.get("rate")
    return words.format_per_s(rate) if rate is not None else f"{cell.load:,.0f} connections"


def _panels(
    sweep: Sweep, titles: Sequence[str], *, shared: bool = True, by_load: bool = True
) -> tuple[Figure, list[Axes]]:
    """A row of panels with room for the title above and the legend below."""
    legend_inches = 0.17 * svg.legend_rows(sweep.labels)
    height = 3.67 + legend_inches
    figure = svg.new_figure(height)
    gap = 0.08 if shared else 0.24
    grid = figure.add_gridspec(
        1,
        max(1, len(titles)),
        left=_LEFT_INCHES / svg.WIDTH_INCHES,
        right=1 - _RIGHT_INCHES / svg.WIDTH_INCHES,
        top=1 - 0.78 / height,
        bottom=(0.54 + legend_inches) / height,
        wspace=gap,
    )
    panels: list[Axes] = []
    for column, title in enumerate(titles):
        axes = figure.add_subplot(grid[0, column], sharey=panels[0] if shared and panels else None)
        axes.set_facecolor("none")
        axes.set_title(title, loc="left", pad=5)
        axes.tick_params(length=2.5, labelleft=not shared or column == 0)
        if by_load:
            _load_axis(axes, sweep)
        panels.append(axes)
    return figure, panels


def _load_axis(axes: Axes, sweep: Sweep) -> None:
    loads = sweep.loads
    if not loads:
        return
    if loads[0] > 0 and loads[-1] / loads[0] > 20:
        axes.set_xscale("log")
        axes.set_xlim(loads[0] / 1.25, loads[-1] * 1.25)
    else:
        margin = 0.12 * (loads[-1] - loads[0]) or 0.5 * loads[0] or 1.0
        axes.set_xlim(loads[0] - margin, loads[-1] + margin)
    shown = loads if len(loads) <= 7 else loads[:: -(-len(loads) // 7)]
    axes.set_xticks(shown, [words.format_rate(load) for load in shown])
    axes.set_xticks([], minor=True)
    axes.grid(axis="x", visible=False)
    axes.set_xlabel(sweep.axis_label, fontsize=7.5, color=svg.MUTED)


def _quantile_axis(axes: Axes, highest: float) -> None:
    axes.set_xscale("log")
    axes.set_xlim(1.6, 1.5 / (1 - highest))
    shown = [quantile for quantile in (0.5, 0.9, 0.99, 0.999, 0.9999) if quantile <= highest]
    axes.set_xticks([1 / (1 - quantile) for quantile in shown], [words.quantile_name(quantile) for quantile in shown])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("quantile p, spread by 1/(1−p)", fontsize=7.5, color=svg.MUTED)


def _limits(values: Iterable[float | None], *, rail: bool) -> Limits:
    finite = [value for value in values if value is not None and math.isfinite(value) and value > 0]
    low, high = (min(finite) / 1.5, max(finite) * 1.6) if finite else (1e6, 1e9)
    decades = math.log10(high / low)
    top = low * 10 ** (decades / (1 - _RAIL_SHARE)) if rail else high
    return Limits(low, high, top)


def _log_duration_axis(axes: Axes, limits: Limits) -> None:
    axes.set_yscale("log")
    axes.set_ylim(limits.low, limits.top)
    first, last = math.floor(math.log10(limits.low)), math.ceil(math.log10(limits.high))
    steps = (1, 2, 5) if last - first <= 2 else (1, 3) if last - first <= 3 else (1,)
    ticks = [step * 10**power for power in range(first, last + 1) for step in steps]
    ticks = [tick for tick in ticks if limits.low <= tick <= limits.high]
    axes.set_yticks(ticks, [_tick_duration(tick) for tick in ticks])
    axes.set_yticks([], minor=True)


def _tick_duration(tick_ns: float) -> str:
    number, _, unit = words.format_duration_ns(tick_ns).partition(" ")
    return f"{float(number.replace(',', '')):g} {unit}"


def _draw_rail(axes: Axes, limits: Limits, *, named: bool) -> None:
    if limits.top <= limits.high:
        return
    axes.axhspan(limits.high, limits.top, facecolor=svg.RAIL, edgecolor="none", zorder=0)
    if named:
        axes.annotate(
            "not met,\nfailed",
            (0, limits.rail),
            (-5, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=7.5,
        )


def _draw_quantile(axes: Axes, sweep: Sweep, quantile: float, limits: Limits) -> None:
    for index, label in enumerate(sweep.labels):
        style = svg.series_style(index)
        middle = [(load, median_upper_ns(sweep.at(label, load), quantile)) for load in sweep.loads]
        _median_line(axes, middle, style)
        for cell in sweep.of(label):
            upper, low = cell.upper_ns(quantile), lookup(cell.bounds(quantile), "low")
            if upper is None or math.isinf(upper):
                continue
            if low is not None and low < upper:
                axes.plot([cell.load] * 2, [low, upper], color=style["color"], linewidth=0.9)
            _dot(axes, cell, upper, style)
    for load in sweep.loads:
        entries = _endless(sweep, load, quantile)
        gap = _DODGE_POINTS if sweep.runs == 1 else 2 * _DODGE_POINTS
        for place, entry in enumerate(entries):
            dodge = _dodge(place, len(entries), gap, sweep.loads.index(load) - len(sweep.loads) + 1)
            _on_the_rail(axes, entry, quantile, Spot(load, dodge, limits))


def _endless(sweep: Sweep, load: float, quantile: float) -> list[tuple[int, tuple[Cell, ...]]]:
    """The runs without a finite value at one load, gathered by server and by kind of marker."""
    gathered: dict[tuple[int, str], list[Cell]] = {}
    for index, label in enumerate(sweep.labels):
        for cell in sweep.at(label, load):
            if cell.upper_ns(quantile) == math.inf:
                kind = cell.status if cell.status in ("failed", "invalid") else "usable"
                gathered.setdefault((index, kind), []).append(cell)
    return [(index, tuple(cells)) for (index, _), cells in gathered.items()]


def _dodge(place: int, count: int, gap: float, from_last: int) -> float:
    """Sideways shift in points: the markers of one load apart, those of the last load inside."""
    centred = (place - (count - 1) / 2) * gap
    overhang = (count - 1) / 2 * gap - 12
    return centred - max(0.0, overhang) if from_last == 0 else centred


@dataclass(frozen=True, slots=True)
class Spot:
    """A place on the rail: the load, the sideways shift in points, and the range of the axis."""

    load: float
    dodge: float
    limits: Limits


def _on_the_rail(axes: Axes, entry: tuple[int, tuple[Cell, ...]], quantile: float, spot: Spot) -> None:
    """Runs without a finite value; what is known as a lower bound hangs below them on a thread."""
    from matplotlib.transforms import ScaledTranslation

    index, cells = entry
    style, load, limits = svg.series_style(index), spot.load, spot.limits
    figure = axes.get_figure(root=True)
    assert figure is not None
    shift = axes.transData + ScaledTranslation(spot.dodge / 72, 0, figure.dpi_scale_trans)
    bounded = [cell for cell in cells if cell.quantile_words(quantile).startswith(">=")]
    lows = [lookup(cell.bounds(quantile), "low") for cell in bounded if cell.status != "failed"]
    if lows:
        heights = [max(min(lows), limits.low), limits.high]
        axes.plot([load, load], heights, color=style["color"], linewidth=0.9, dashes=(1, 2), transform=shift)
        axes.plot([load] * len(lows), lows, "_", markersize=6, color=style["color"], transform=shift)
    failed, invalid = cells[0].status == "failed", cells[0].status == "invalid"
    axes.plot(
        [load],
        [limits.rail],
        marker="x" if failed else style["marker"],
        markersize=5,
        zorder=5,
        color=style["color"],
        markerfacecolor="none" if invalid else style["color"],
        transform=shift,
        clip_on=False,
    )
    if len(cells) > 1:
        axes.annotate(
            str(len(cells)),
            (load, limits.rail),
            (spot.dodge + 3.5, 0),
            fontsize=6,
            va="center",
            textcoords="offset points",
            color=svg.MUTED,
            annotation_clip=False,
        )


def _median_line(axes: Axes, points: Sequence[tuple[float, float | None]], style: dict[str, Any]) -> None:
    heights = [math.nan if value is None else value for _, value in points]
    axes.plot(
        [load for load, _ in points],
        heights,
        color=style["color"],
        linestyle=style["linestyle"],
        linewidth=1.4,
        zorder=3,
    )


def _dot(axes: Axes, cell: Cell, height: float, style: dict[str, Any]) -> None:
    fill = "none" if cell.status == "invalid" else style["color"]
    axes.plot(
        [cell.load],
        [height],
        marker=style["marker"],
        markersize=4.4,
        color=style["color"],
        markerfacecolor=fill,
        markeredgewidth=1.0,
        clip_on=False,
        zorder=4,
    )


def _draw_numbers(axes: Axes, sweep: Sweep, number: Callable[[Cell], float | None]) -> None:
    """Every run a dot and the median over usable runs a line."""
    for index, label in enumerate(sweep.labels):
        style = svg.series_style(index)
        middle: list[tuple[float, float | None]] = []
        for load in sweep.loads:
            known = sorted(
                value for cell in sweep.at(label, load) if cell.usable for value in [number(cell)] if value is not None
            )
            half = len(known) // 2
            middle.append((load, (known[half] + known[-half - 1]) / 2 if known else None))
        _median_line(axes, middle, style)
        for cell in sweep.of(label):
            value = number(cell)
            if value is not None:
                _dot(axes, cell, value, style)


def _failed_percent(cell: Cell) -> float | None:
    ratio = words.failed_ratio(cell.outcomes)
    return None if ratio is None else ratio * 100


def _throttled_percent(cell: Cell) -> float | None:
    ratio = cell.resource("throttled_period_ratio")
    return None if ratio is None else ratio * 100


def _memory_mib(cell: Cell) -> float | None:
    size_bytes = cell.resource("memory_peak_bytes")
    return None if size_bytes is None else size_bytes / (1 << 20)


def _from_zero(axes: Axes, least_top: float = 0.0) -> None:
    drawn: list[Any] = [list(line.get_ydata()) for line in axes.get_lines()]  # type: ignore[arg-type]
    heights = [float(height) for line in drawn for height in line if math.isfinite(height)]
    axes.set_ylim(0, max([*heights, least_top / 1.12]) * 1.12 or 1.0)


def _limit_line(axes: Axes, limit: float | None, name: str) -> None:
    if limit is None:
        return
    axes.axhline(limit, color=svg.MUTED, linewidth=0.9, dashes=(4, 3), zorder=1)
    axes.annotate(
        name,
        (0, limit),
        (3, 3),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        fontsize=7,
        color=svg.MUTED,
    )


def _spectrum(cells: tuple[Cell, ...]) -> list[tuple[float, float]]:
    """The quantiles of one server at one load, up to the first that has no finite value."""
    points: list[tuple[float, float]] = []
    for quantile in SPECTRUM_QUANTILES:
        value = median_upper_ns(cells, quantile) if any(cell.usable for cell in cells) else None
        if value is None:
            break
        points.append((quantile, value))
    return points


def _draw_interval_times(axes: Axes, strip: Strip) -> None:
    series = (("p50", strip.p50_ns, svg.PALETTE[2], "-"), ("p99", strip.p99_ns, svg.PALETTE[0], "-"))
    known = [value for values in (strip.p50_ns, strip.p99_ns, strip.max_ns) for value in values]
    _log_duration_axis(axes, _limits(known, rail=False))
    axes.set_facecolor("none")
    middles = strip.middles_s
    heights = [math.nan if value is None else value for value in strip.max_ns]
    axes.plot(middles, heights, linestyle="none", marker="_", markersize=5, color=svg.MUTED, label="max")
    for name, values, colour, dash in series:
        heights = [math.nan if value is None else value for value in values]
        axes.plot(
            middles,
            heights,
            color=colour,
            linestyle=dash,
            linewidth=1.4,
            marker="o",
            markersize=2.4,
            label=name,
        )
    axes.set_ylabel("response time")
    axes.legend(
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=3,
        fontsize=7.5,
        handlelength=1.6,
        borderpad=0,
        borderaxespad=0.2,
    )


def _draw_busy(axes: Axes, strip: Strip) -> None:
    axes.set_facecolor("none")
    axes.set_ylabel("CPU cores")
    if not strip.busy:
        axes.set_yticks([])
        axes.text(0.5, 0.5, "CPU: not measured in this window", transform=axes.transAxes, ha="center", va="center")
        return
    edges = [strip.busy[0].start_s, *(sample.end_s for sample in strip.busy)]
    axes.stairs(
        [sample.cores for sample in strip.busy],
        edges,
        baseline=None,
        color=svg.PALETTE[4],
        linewidth=1.1,
        zorder=3,
    )
    top = max([sample.cores for sample in strip.busy] + [strip.cpu_limit or 0.0, 0.1])
    axes.set_ylim(0, top * 1.18)
    _limit_line(axes, strip.cpu_limit, "limit")
    other = axes.twinx()
    other.set_ylim(0, 118)
    other.set_yticks([0, 50, 100], ["0 %", "50 %", "100 %"])
    other.grid(visible=False)
    other.set_ylabel("throttled", color=svg.ALERT)
    other.tick_params(length=2.5)
    if any(sample.throttled_ratio is not None for sample in strip.busy):
        shares = [100 * (sample.throttled_ratio or 0.0) for sample in strip.busy]
        other.stairs(shares, edges, fill=True, color=svg.ALERT, alpha=0.28, linewidth=0, zorder=1)
    else:
        other.set_ylabel("throttled:\nnot measured", color=svg.ALERT)


def _short_axis(sweep: Sweep) -> str:
    if not sweep.open_loop:
        return "connections"
    return "offered rate of sessions" if sweep.is_of_sessions else "offered rate"


def _title(figure: Figure, title: str, subtitle: str, height: float) -> None:
    left = 0.02 / svg.WIDTH_INCHES
    figure.text(left, 1 - 0.16 / height, title, fontsize=10.5, fontweight="bold", va="center")
    figure.text(left, 1 - 0.35 / height, subtitle, fontsize=7.5, color=svg.MUTED, va="center")


def _finish(figure: Figure, name: str, title: str, sweep: Sweep) -> str:
    """Title with the conditions of the measurement, legend, and out."""
    from matplotlib.lines import Line2D

    _title(figure, title, conditions(sweep.experiment), float(figure.get_figheight()))
    handles = [
        Line2D([], [], linewidth=1.4, markersize=4.4, label=label, **svg.series_style(index))
        for index, label in enumerate(sweep.labels)
    ]
    figure.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(_LEFT_INCHES / svg.WIDTH_INCHES, 0.0),
        ncols=svg.legend_columns(sweep.labels),
        fontsize=8,
        handlelength=3.4,
        borderaxespad=0.1,
        borderpad=0.1,
        columnspacing=1.8,
        labelspacing=0.4,
    )
    return svg.to_svg(figure, name, f"{title}. {conditions(sweep.experiment)}")
