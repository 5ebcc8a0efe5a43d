"""What the charts of the report have in common: panels, scales, titles and legends; no data is
drawn here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wsgiload.report import svg, words
from wsgiload.report.cells import Sweep, conditions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LEFT_INCHES, _RIGHT_INCHES = 0.72, 0.12
_RAIL_SHARE = 0.10


@dataclass(frozen=True, slots=True)
class Limits:
    """The vertical range of a logarithmic axis, and where the rail above it lies."""

    low: float
    high: float
    top: float

    @property
    def rail(self) -> float:
        return math.sqrt(self.high * self.top)


def panels_of(
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
            load_axis(axes, sweep)
        panels.append(axes)
    return figure, panels


def load_axis(axes: Axes, sweep: Sweep) -> None:
    """The loads that were measured, as they are or by their logarithm, whichever keeps them
    apart."""
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


def quantile_axis(axes: Axes, highest: float) -> None:
    """Quantiles spread by 1/(1-p), up to the highest that is known."""
    axes.set_xscale("log")
    axes.set_xlim(1.6, 1.5 / (1 - highest))
    shown = [quantile for quantile in (0.5, 0.9, 0.99, 0.999, 0.9999) if quantile <= highest]
    axes.set_xticks(
        [1 / (1 - quantile) for quantile in shown],
        [words.quantile_name(quantile) for quantile in shown],
    )
    axes.set_xticks([], minor=True)
    axes.set_xlabel("quantile p, spread by 1/(1−p)", fontsize=7.5, color=svg.MUTED)


def limits_of(values: Iterable[float | None], *, rail: bool) -> Limits:
    """The range that holds all finite values, with room above for the rail if there is one."""
    finite = [value for value in values if value is not None and math.isfinite(value) and value > 0]
    low, high = (min(finite) / 1.5, max(finite) * 1.6) if finite else (1e6, 1e9)
    decades = math.log10(high / low)
    top = low * 10 ** (decades / (1 - _RAIL_SHARE)) if rail else high
    return Limits(low, high, top)


def log_duration_axis(axes: Axes, limits: Limits) -> None:
    """Durations by their logarithm, with ticks that read well."""
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


def from_zero(axes: Axes, least_top: float = 0.0) -> None:
    """From zero to a little above whatever is drawn already."""
    drawn: list[Any] = [list(line.get_ydata()) for line in axes.get_lines()]  # type: ignore[arg-type]
    heights = [float(height) for line in drawn for height in line if math.isfinite(height)]
    axes.set_ylim(0, max([*heights, least_top / 1.12]) * 1.12 or 1.0)


def say_instead(axes: Axes, text: str) -> None:
    """Why a panel is empty, where its data would be."""
    axes.text(
        0.5,
        0.5,
        text,
        transform=axes.transAxes,
        ha="center",
        va="center",
        fontsize=7.5,
        color=svg.MUTED,
    )


def limit_line(axes: Axes, limit: float | None, name: str) -> None:
    """A limit that was set, where there is one."""
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


def write_title(figure: Figure, title: str, subtitle: str, height: float) -> None:
    """Title and subtitle above the panels; ``height`` in inches."""
    left = 0.02 / svg.WIDTH_INCHES
    figure.text(left, 1 - 0.16 / height, title, fontsize=10.5, fontweight="bold", va="center")
    figure.text(left, 1 - 0.35 / height, subtitle, fontsize=7.5, color=svg.MUTED, va="center")


def finish(figure: Figure, name: str, title: str, sweep: Sweep) -> str:
    """Title with the conditions of the measurement, legend, and out."""
    from matplotlib.lines import Line2D

    write_title(figure, title, conditions(sweep.experiment), float(figure.get_figheight()))
    handles = []
    for index, label in enumerate(sweep.labels):
        style = svg.series_style(index)
        handles.append(
            Line2D(
                [],
                [],
                color=style.colour,
                marker=style.marker,
                linestyle=style.dash,
                linewidth=1.4,
                markersize=4.4,
                label=label,
            )
        )
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
