"""A chart of medians and ranges over an ordinal axis, as SVG. Pure, and independent of the
benchmarks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _PANEL_HEIGHT, _LEFT, _RIGHT, _TOP, _PLOT_HEIGHT = 860, 330, 60, 20, 44, 210
_COLOURS = ("#1f5fa8", "#c05a17", "#3b7d3b", "#7a4b9a")


@dataclass(frozen=True, slots=True)
class Point:
    """Median, minimum and maximum; points of a group have the same color."""

    label: str
    group: str
    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Panel:
    """One axis from 0 to ``top``. Ranges above ``top`` are cut off; medians above ``top`` are
    labeled with their value."""

    title: str
    points: Sequence[Point]
    top: float
    step: float
    reference: float | None = None


def svg(panels: Sequence[Panel]) -> str:
    """One document with the panels below each other."""
    groups = sorted({point.group for panel in panels for point in panel.points})
    colours = {group: _COLOURS[number % len(_COLOURS)] for number, group in enumerate(groups)}
    height = _PANEL_HEIGHT * len(panels)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" height="{height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>',
    ]
    for number, panel in enumerate(panels):
        lines += _drawn(panel, number * _PANEL_HEIGHT + _TOP, colours)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _drawn(panel: Panel, top: float, colours: dict[str, str]) -> list[str]:
    def y(value: float) -> float:
        return round(top + _PLOT_HEIGHT * (1 - min(value, panel.top) / panel.top), 1)

    lines = [_text(_LEFT, top - 24, panel.title, 'font-size="14" font-weight="bold"')]
    for number, (group, colour) in enumerate(colours.items()):
        lines.append(_text(_LEFT + 190 * number, top - 8, f"● {group}", f'fill="{colour}"'))

    for tick in range(math.floor(panel.top / panel.step + 1e-9) + 1):
        value = tick * panel.step
        dark = panel.reference is not None and math.isclose(value, panel.reference)
        lines.append(_line(_LEFT, y(value), _WIDTH - _RIGHT, y(value), "#444" if dark else "#ddd"))
        lines.append(_text(_LEFT - 8, y(value) + 4, f"{value:g}", 'text-anchor="end"'))

    pitch = (_WIDTH - _LEFT - _RIGHT) / len(panel.points)
    for number, point in enumerate(panel.points):
        x, colour = round(_LEFT + pitch * (number + 0.5), 1), colours[point.group]
        lines.append(_line(x, y(point.low), x, y(point.high), colour))
        lines.append(f'<circle cx="{x}" cy="{y(point.median)}" r="4" fill="{colour}"/>')
        if point.median > panel.top:
            lines.append(
                _text(x + 8, y(point.median) + 14, f"↑ {point.median:,.0f}", f'fill="{colour}"')
            )
        below = top + _PLOT_HEIGHT + 14
        lines.append(
            _text(x, below, point.label, f'text-anchor="end" transform="rotate(-35 {x} {below})"')
        )
    return lines


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}"/>'


def _text(x: float, y: float, words: str, attributes: str) -> str:
    return f'<text x="{x}" y="{y}" {attributes}>{escape(words)}</text>'
