"""How runs are drawn: each a dot, the median over usable runs a line, and what has no finite value
on the rail."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wsgiload.report import svg, words
from wsgiload.report.axes import Limits, say_instead
from wsgiload.report.cells import Cell, Sweep, median_upper_ns

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DODGE_POINTS = 7.0


def draw_rail(axes: Axes, limits: Limits, *, named: bool) -> None:
    """The band above the axis where runs without a finite value stand."""
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


def draw_quantile(axes: Axes, sweep: Sweep, quantile: float, limits: Limits) -> None:
    """One quantile of every run at every load; where no run has it, what it takes."""
    if all(cell.upper_ns(quantile) is None for cell in sweep.cells):
        counted = any(words.enough_requests(cell.scheduled, quantile) for cell in sweep.cells)
        say_instead(axes, words.NOT_MEASURED if counted else words.needed_requests(quantile))
        return
    for index, label in enumerate(sweep.labels):
        style = svg.series_style(index)
        middle = [(load, median_upper_ns(sweep.at(label, load), quantile)) for load in sweep.loads]
        _median_line(axes, middle, style)
        for cell in sweep.of(label):
            upper, low = cell.upper_ns(quantile), cell.low_ns(quantile)
            if upper is None or math.isinf(upper):
                continue
            if low is not None and low < upper:
                axes.plot([cell.load] * 2, [low, upper], color=style.colour, linewidth=0.9)
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


def _on_the_rail(
    axes: Axes, entry: tuple[int, tuple[Cell, ...]], quantile: float, spot: Spot
) -> None:
    """Runs without a finite value; what is known as a lower bound hangs below them on a thread."""
    from matplotlib.transforms import ScaledTranslation

    index, cells = entry
    style, load, limits = svg.series_style(index), spot.load, spot.limits
    figure = axes.get_figure(root=True)
    assert figure is not None
    shift = axes.transData + ScaledTranslation(spot.dodge / 72, 0, figure.dpi_scale_trans)
    bounded = [cell for cell in cells if cell.quantile_words(quantile).startswith(">=")]
    known = [cell.low_ns(quantile) for cell in bounded if cell.status != "failed"]
    lows = [low for low in known if low is not None]
    if lows:
        heights = [max(min(lows), limits.low), limits.high]
        axes.plot(
            [load, load],
            heights,
            color=style.colour,
            linewidth=0.9,
            dashes=(1, 2),
            transform=shift,
        )
        axes.plot([load] * len(lows), lows, "_", markersize=6, color=style.colour, transform=shift)
    failed, invalid = cells[0].status == "failed", cells[0].status == "invalid"
    axes.plot(
        [load],
        [limits.rail],
        marker="x" if failed else style.marker,
        markersize=5,
        zorder=5,
        color=style.colour,
        markerfacecolor="none" if invalid else style.colour,
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


def draw_numbers(
    axes: Axes,
    sweep: Sweep,
    number: Callable[[Cell], float | None],
    otherwise: str = words.NOT_MEASURED,
) -> None:
    """Every run a dot and the median over usable runs a line; ``otherwise`` stands where no run
    has the number."""
    if all(number(cell) is None for cell in sweep.cells):
        say_instead(axes, otherwise)
        return
    for index, label in enumerate(sweep.labels):
        style = svg.series_style(index)
        middle: list[tuple[float, float | None]] = []
        for load in sweep.loads:
            known = sorted(
                value
                for cell in sweep.at(label, load)
                if cell.usable
                for value in [number(cell)]
                if value is not None
            )
            half = len(known) // 2
            middle.append((load, (known[half] + known[-half - 1]) / 2 if known else None))
        _median_line(axes, middle, style)
        for cell in sweep.of(label):
            value = number(cell)
            if value is not None:
                _dot(axes, cell, value, style)


def _median_line(
    axes: Axes, points: Sequence[tuple[float, float | None]], style: svg.SeriesStyle
) -> None:
    heights = [math.nan if value is None else value for _, value in points]
    axes.plot(
        [load for load, _ in points],
        heights,
        color=style.colour,
        linestyle=style.dash,
        linewidth=1.4,
        zorder=3,
    )


def _dot(axes: Axes, cell: Cell, height: float, style: svg.SeriesStyle) -> None:
    fill = "none" if cell.status == "invalid" else style.colour
    axes.plot(
        [cell.load],
        [height],
        marker=style.marker,
        markersize=4.4,
        color=style.colour,
        markerfacecolor=fill,
        markeredgewidth=1.0,
        clip_on=False,
        zorder=4,
    )
