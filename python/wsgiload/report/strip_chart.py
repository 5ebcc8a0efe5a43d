"""One cell over time, as SVG text: response times, and what the server used meanwhile, on one
clock."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from wsgiload.documents.summary import ExperimentFacts
from wsgiload.report import svg, words
from wsgiload.report.axes import limit_line, limits_of, log_duration_axis, write_title
from wsgiload.report.cells import Cell, conditions
from wsgiload.report.strip import Strip

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def strip_chart(strip: Strip, experiment: ExperimentFacts, name: str) -> str:
    """One cell over time: response time per interval above, CPU and throttling on the same clock
    beneath."""
    with svg.settings():
        figure = svg.new_figure(2.75)
        grid = figure.add_gridspec(
            2, 1, height_ratios=(3, 2), hspace=0.2, left=0.07, right=0.93, top=0.83, bottom=0.14
        )
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
        subtitle = f"{conditions(experiment, cell.result)} · {cell.verdict_words()}"
        write_title(figure, title, subtitle, 2.75)
        return svg.to_svg(figure, name, f"{title}: response time, CPU and throttling over time")


def _load_text(cell: Cell) -> str:
    rate = cell.result.rate
    return words.format_per_s(rate) if rate is not None else f"{cell.load:,.0f} connections"


def _draw_interval_times(axes: Axes, strip: Strip) -> None:
    series = (
        ("p50", strip.p50_ns, svg.PALETTE[2], "-"),
        ("p99", strip.p99_ns, svg.PALETTE[0], "-"),
    )
    known = [value for values in (strip.p50_ns, strip.p99_ns, strip.max_ns) for value in values]
    log_duration_axis(axes, limits_of(known, rail=False))
    axes.set_facecolor("none")
    middles = strip.middles_s
    heights = [math.nan if value is None else value for value in strip.max_ns]
    axes.plot(
        middles, heights, linestyle="none", marker="_", markersize=5, color=svg.MUTED, label="max"
    )
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
        axes.text(
            0.5,
            0.5,
            "CPU: not measured in this window",
            transform=axes.transAxes,
            ha="center",
            va="center",
        )
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
    limit_line(axes, strip.cpu_limit, "limit")
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
