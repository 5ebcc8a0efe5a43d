"""The chart of a study as SVG: throughput and p99 of each server, with original settings and with
fair settings. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from studies.results import Figure, Row, StudyRun
from wsgiload.report.page import DARK, LIGHT
from wsgiload.units import three_digits

WIDTH, MARGIN, LABELS, GAP = 900, 16, 132, 28
TITLE, HEADING, ROW, AXIS, LEGEND_LINE = 30, 44, 24, 40, 18
# The last label of an axis is centred on its end.
TICK = 28
PLOT = (WIDTH - 2 * MARGIN - GAP) / 2 - LABELS - TICK
# Between the series of one row.
OFFSET = 5
# The surrounding page may be light or dark, so the picture has its own background.
_STYLE = """
text{font:12px system-ui,sans-serif;fill:#24292f}.dim{fill:#57606a}.strong{font-weight:600}
.page{fill:#fff}.grid{stroke:#d8dee4}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.dim{fill:#9198a1}.page{fill:#0d1117}
.grid{stroke:#3d444d}"""


@dataclass(frozen=True, slots=True)
class _Metric:
    """The figure in a panel; ``is_beyond`` is true if it has no finite value."""

    title: str
    read: Callable[[Row], Figure]
    is_beyond: Callable[[Row], bool]


METRICS = (
    _Metric(
        "throughput, correct responses per second",
        lambda row: row.throughput_per_s,
        lambda row: False,
    ),
    _Metric(
        "p99 of all scheduled requests, ms", lambda row: row.p99_ms, lambda row: row.is_p99_beyond
    ),
)


@dataclass(frozen=True, slots=True)
class _Scale:
    """A logarithmic axis."""

    low: int
    high: int
    left: float

    def x(self, value: float) -> float:
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return round(self.left + PLOT * min(1.0, max(0.0, share)), 1)


def chart(title: str, original: StudyRun | None, fair: StudyRun | None) -> str:
    """One document: a column for each version that was measured, a panel for each figure."""
    columns = [
        (heading, run)
        for heading, run in (("original settings", original), ("fair settings", fair))
        if run is not None
    ]
    rows = max(len(_servers(run)) for _, run in columns)
    panel = HEADING + rows * ROW + AXIS
    legend = max(len(_series(run)) for _, run in columns) * LEGEND_LINE + MARGIN
    height = TITLE + panel * len(METRICS) + legend

    parts = [_text(MARGIN, TITLE - 8, title, "strong")]
    for number, (heading, run) in enumerate(columns):
        left = MARGIN + number * (LABELS + PLOT + GAP)
        for place, metric in enumerate(METRICS):
            top = TITLE + place * panel
            parts.append(_text(left, top + 16, heading, "strong"))
            parts.append(_text(left, top + 32, metric.title, "dim"))
            low, high = _decades([one for _, one in columns], metric.read)
            parts += _panel(run, metric, _Scale(low, high, left + LABELS), top + HEADING)
        parts += _legend(run, left, TITLE + panel * len(METRICS))
    return _document(title, height, parts)


def _document(title: str, height: float, parts: Sequence[str]) -> str:
    colours = "".join(f".s{place}{{fill:{one};stroke:{one}}}" for place, one in enumerate(LIGHT))
    dark = "".join(f".s{place}{{fill:{one};stroke:{one}}}" for place, one in enumerate(DARK))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" '
            f'width="{WIDTH}" height="{height:g}" role="img" aria-label="{escape(title)}">',
            f"<style>{colours}{_STYLE}{dark}}}</style>",
            f'<rect class="page" width="{WIDTH}" height="{height:g}" rx="6"/>',
            *parts,
            "</svg>\n",
        ]
    )


def _panel(run: StudyRun, metric: _Metric, scale: _Scale, top: float) -> list[str]:
    servers, series = _servers(run), _series(run)
    bottom = top + ROW * len(servers)
    parts = []
    for decade in range(scale.low, scale.high + 1):
        x = scale.x(10.0**decade)
        parts.append(f'<line class="grid" x1="{x}" y1="{top:g}" x2="{x}" y2="{bottom:g}"/>')
        parts.append(_text(x, bottom + 16, three_digits(10.0**decade), "dim", "middle"))
    for place, server in enumerate(servers):
        y = top + ROW * (place + 0.5)
        parts.append(_text(scale.left - 8, y + 4, server, "", "end"))
        rows = [row for row in run.rows if row.server == server]
        if not any(row.runs for row in rows):
            parts.append(_text(scale.left + 6, y + 4, "no valid run", "dim"))
        for row in rows:
            index = series.index((row.setting, row.load))
            colour, offset = f"s{index % len(LIGHT)}", index - (len(series) - 1) / 2
            if metric.is_beyond(row):
                parts.append(_arrow(scale.left + PLOT, y + OFFSET * offset, colour))
            else:
                parts += _mark(metric.read(row), scale, y + OFFSET * offset, colour)
    return parts


def _arrow(x: float, y: float, colour: str) -> str:
    return f'<path class="{colour}" d="M{x - 8:g} {y - 4:g}l8 4l-8 4z"/>'


def _mark(figure: Figure, scale: _Scale, y: float, colour: str) -> list[str]:
    """A dot with its interval."""
    if not figure.value:
        return []
    parts = []
    if figure.low and figure.high:
        ends = (scale.x(figure.low), scale.x(figure.high))
        parts.append(
            f'<line class="{colour}" stroke-width="2" x1="{ends[0]}" y1="{y:g}" x2="{ends[1]}" '
            f'y2="{y:g}"/>'
        )
    parts.append(f'<circle class="{colour}" cx="{scale.x(figure.value)}" cy="{y:g}" r="3"/>')
    return parts


def _legend(run: StudyRun, left: float, top: float) -> list[str]:
    parts = []
    for place, (setting, load) in enumerate(_series(run)):
        y = top + LEGEND_LINE * place
        words = ", ".join(filter(None, [setting, load_words(run, load)]))
        parts.append(f'<circle class="s{place % len(LIGHT)}" cx="{left + 6:g}" cy="{y:g}" r="4"/>')
        parts.append(_text(left + 18, y + 4, words))
    return parts


def load_words(run: StudyRun, load: float) -> str:
    """ "1,000 connections", or "3,000 requests/s"."""
    return f"{load:,g} {'requests/s' if run.is_open else 'connections'}"


def _servers(run: StudyRun) -> list[str]:
    return list(dict.fromkeys(row.server for row in run.rows))


def _series(run: StudyRun) -> list[tuple[str, float]]:
    return sorted({(row.setting, row.load) for row in run.rows})


def _decades(runs: Sequence[StudyRun], read: Callable[[Row], Figure]) -> tuple[int, int]:
    """The powers of ten around everything that is drawn."""
    figures = [read(row) for run in runs for row in run.rows]
    values = [
        value for one in figures for value in (one.value, one.low, one.high) if value is not None
    ]
    known = [value for value in values if value > 0]
    if not known:
        return 0, 1
    low, high = math.floor(math.log10(min(known))), math.ceil(math.log10(max(known)))
    return low, max(high, low + 1)


def _text(x: float, y: float, words: str, style: str = "", anchor: str = "start") -> str:
    name = f' class="{style}"' if style else ""
    place = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text{name}{place} x="{x:g}" y="{y:g}">{escape(words)}</text>'
