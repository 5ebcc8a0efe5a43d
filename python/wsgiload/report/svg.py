"""Turns a matplotlib figure into SVG text that lives inside the report page.

Deterministic: no dates, no random identifiers. Colours become CSS variables with the light colour
as their fallback, so that one drawing suits light, dark and print; text takes the page's own font.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Literal, cast

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH_INCHES = 10.4

# Colours that stand for a role. They are replaced below, so their values only have to be unique.
INK = "#010203"
MUTED = "#6b7280"
GRID = "#e3e6ea"
RAIL = "#f6ece7"
ALERT = "#b45309"

# With the markers and dashes below told apart by any colour vision; none is fainter than 3:1 on its
# page.
PALETTE = ("#0072b2", "#d55e00", "#00896b", "#aa4499", "#332288", "#8a8a1f", "#882255", "#5a5f69")
DARK_PALETTE = (
    "#56b4e9",
    "#f28e4b",
    "#3ccfa0",
    "#e28bd6",
    "#a39af5",
    "#d6d65c",
    "#ee7ba6",
    "#b4bac4",
)
MARKERS = ("o", "s", "^", "D", "v", "P", "p", "h", "<")
Dash = Literal["-"] | tuple[float, tuple[float, ...]]
DASHES: tuple[Dash, ...] = (
    "-",
    (0, (5, 2)),
    (0, (1.5, 1.5)),
    (0, (7, 2, 1.5, 2)),
    (0, (3, 1.5, 1.5, 1.5, 1.5, 1.5)),
)

_ROLES = {
    INK: "currentColor",
    MUTED: f"var(--chart-muted, {MUTED})",
    GRID: f"var(--chart-grid, {GRID})",
}
_ROLES |= {RAIL: f"var(--chart-rail, {RAIL})", ALERT: f"var(--chart-alert, {ALERT})"}
_ROLES |= {colour: f"var(--series-{index}, {colour})" for index, colour in enumerate(PALETTE)}

_SETTINGS: Mapping[str, object] = {
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.labelsize": 8,
    "axes.linewidth": 0.7,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlesize": 8.5,
    "axes.grid": True,
    "axes.axisbelow": True,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "svg.fonttype": "none",
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "xtick.labelsize": 7.5,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
    "ytick.labelsize": 7.5,
}


def settings() -> Any:
    """The context in which a figure is drawn."""
    import matplotlib

    return matplotlib.rc_context(cast(Any, _SETTINGS))


def new_figure(height_inches: float) -> Figure:
    """An empty figure of the report's width with no background of its own."""
    from matplotlib.figure import Figure

    return Figure(figsize=(WIDTH_INCHES, height_inches), facecolor="none")


def to_svg(figure: Figure, name: str, label: str) -> str:
    """The figure as one <svg> element; ``name`` keeps its identifiers apart from those of other
    charts."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    buffer = io.StringIO()
    metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with matplotlib.rc_context({"svg.hashsalt": name}):
        FigureCanvasSVG(figure).print_svg(buffer, metadata=metadata)  # type: ignore[no-untyped-call]
    text = buffer.getvalue()
    text = text[text.index("<svg ") :]
    opening = _opening_tag(text, label)
    body = text[text.index(">") + 1 :]
    return opening + _coloured(_own_fonts(_own_identifiers(_without_baggage(body), name))).strip()


@dataclass(frozen=True, slots=True)
class SeriesStyle:
    """How one server is drawn, told apart from others by more than its colour."""

    colour: str
    marker: str
    dash: Dash


def series_style(index: int) -> SeriesStyle:
    """Colour, marker and dash of one server; no two of the first 360 are alike."""
    return SeriesStyle(
        PALETTE[index % len(PALETTE)], MARKERS[index % len(MARKERS)], DASHES[index % len(DASHES)]
    )


def legend_rows(labels: Sequence[str]) -> int:
    """How many rows the legend under a chart needs."""
    return -(-len(labels) // legend_columns(labels))


def legend_columns(labels: Sequence[str]) -> int:
    """How many entries fit side by side."""
    longest = max((len(label) for label in labels), default=1)
    return max(1, min(len(labels), int(150 / (longest + 8))))


def _opening_tag(text: str, label: str) -> str:
    found = re.search(r'viewBox="([^"]*)"', text)
    box = found.group(1) if found else "0 0 1 1"
    namespaces = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    joins = 'stroke-linejoin="round" stroke-linecap="butt"'
    return (
        f'<svg class="chart" role="img" aria-label="{escape(label)}" viewBox="{box}" '
        f"{joins} {namespaces}>"
    )


def _without_baggage(text: str) -> str:
    """Drop the metadata, the document-wide style and the group names, which mean nothing inside a
    page."""
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"<defs>\s*<style[^>]*>.*?</style>\s*</defs>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'<g id="[^"]*">', "<g>", text)
    return re.sub(r' transform="rotate\(-0 [^"]*\)"', "", text)


def _own_identifiers(text: str, name: str) -> str:
    text = re.sub(r'\bid="([^"]*)"', rf'id="{name}-\1"', text)
    text = re.sub(r'xlink:href="#([^"]*)"', rf'xlink:href="#{name}-\1"', text)
    return re.sub(r"url\(#([^)]*)\)", rf"url(#{name}-\1)", text)


def _own_fonts(text: str) -> str:
    """Leave size and weight to the chart and the family to the page (two ways of writing it, by
    version)."""
    text = re.sub(r" ?font-family: [^;\"]*;?", "", text)
    return re.sub(
        r"font: (?:(bold|\d+) )?([\d.]+px) [^;\"]*",
        lambda found: f"font-size: {found[2]}" + (f"; font-weight: {found[1]}" if found[1] else ""),
        text,
    )


def _coloured(text: str) -> str:
    return re.sub(r"#[0-9a-f]{6}\b", lambda found: _ROLES.get(found[0], found[0]), text)
