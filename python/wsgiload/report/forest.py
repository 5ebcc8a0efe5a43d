"""The comparison as a forest plot: one row per pair and load, its factor with its interval, and the
margin of "same".

Draws what ``comparison`` found and concludes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from wsgiload.documents.summary import Comparison
from wsgiload.report import svg, words
from wsgiload.report.over_runs import factor_of, load_words
from wsgiload.statistics.effect import SAME_WITHIN

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Name = Callable[[Comparison], str]

MOST_ROWS = 30
_TICKS = (
    (2.0, (0.7, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.2, 1.3, 1.4, 1.5)),
    (16.0, (0.1, 0.25, 0.5, 0.7, 0.85, 1, 1.2, 1.5, 2, 3, 4, 6, 8)),
)
_FAR_TICKS = tuple(10.0**power for power in range(-6, 7))
_ROW_INCHES, _HEAD_INCHES, _FOOT_INCHES, _NAMES_SHARE = 0.22, 0.62, 0.42, 0.36


def drawable(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons that have a factor, as many as fit; the A/A pairs first, because the others
    are read by them."""
    known = [entry for entry in comparisons if entry.factor is not None]
    return sorted(known, key=lambda entry: not entry.same_server)[:MOST_ROWS]


def forest_chart(
    comparisons: Sequence[Comparison],
    conditions: str,
    of: str = "the first over the second",
    name: Name | None = None,
) -> str:
    """The factors of ``drawable`` on a logarithmic axis, 1 in the middle; ``name`` says how a row
    is called."""
    rows = drawable(comparisons)
    title = f"{rows[0].figure} of {of}, with 95 % interval"
    height = _HEAD_INCHES + _FOOT_INCHES + _ROW_INCHES * len(rows)
    with svg.settings():
        figure = svg.new_figure(height)
        left = 0.02 / svg.WIDTH_INCHES
        figure.text(left, 1 - 0.16 / height, title, fontsize=10.5, fontweight="bold", va="center")
        figure.text(left, 1 - 0.35 / height, conditions, fontsize=7.5, color=svg.MUTED, va="center")
        share = _ROW_INCHES * len(rows) / height
        axes = figure.add_axes((_NAMES_SHARE, _FOOT_INCHES / height, 0.98 - _NAMES_SHARE, share))
        _draw(axes, rows, name or row_name)
        return svg.to_svg(figure, "forest", f"{title}. {conditions}")


def _draw(axes: Axes, rows: Sequence[Comparison], name: Name) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator

    axes.set_xscale("log")
    axes.axvspan(1 / (1 + SAME_WITHIN), 1 + SAME_WITHIN, color=svg.RAIL, zorder=0)
    axes.axvline(1, color=svg.MUTED, linewidth=0.8, zorder=1)
    for place, entry in enumerate(rows):
        factor = factor_of(entry)
        colour = svg.MUTED if entry.same_server else svg.PALETTE[0]
        is_found = entry.finding in ("different", "same")
        axes.plot([factor.low, factor.high], [place, place], color=colour, linewidth=1.4)
        axes.plot(
            [factor.value],
            [place],
            "o",
            color=colour,
            markersize=5,
            fillstyle="full" if is_found else "none",
        )
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_yticks(range(len(rows)), [name(entry) for entry in rows])
    axes.grid(False, axis="y")
    axes.xaxis.set_major_locator(FixedLocator(_ticks(rows)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}×")


def _ticks(rows: Sequence[Comparison]) -> tuple[float, ...]:
    """A logarithmic axis of less than a decade would label nothing but 1."""
    factors = [factor_of(entry) for entry in rows]
    ends = [end for factor in factors for end in (factor.low, factor.high)]
    span = max(*ends, 1 + SAME_WITHIN) / min(*ends, 1 / (1 + SAME_WITHIN))
    return next((ticks for widest, ticks in _TICKS if span <= widest), _FAR_TICKS)


def row_name(entry: Comparison) -> str:
    """ "gthread over sync at 500/s", an A/A pair marked as one."""
    lead = "A/A: " if entry.same_server else ""
    return f"{lead}{entry.first} over {entry.second} at {load_words(entry)}"


def row_numbers(entry: Comparison) -> tuple[str, ...]:
    """Factor, interval and both p of a row, as text."""
    factor = factor_of(entry)
    numbers = (factor.value, factor.low, factor.high, factor.p, factor.p_adjusted)
    return tuple(f"{number:.3g}" for number in numbers)


def caption(comparisons: Sequence[Comparison]) -> str:
    """How many differences the data carry."""
    pairs = [entry for entry in comparisons if not entry.same_server]
    counts = [sum(entry.finding == finding for entry in pairs) for finding in ("different", "same")]
    if not pairs:
        return "A/A test (one server, two names): any difference is chance."
    return (
        f"Of {words.plural(len(pairs), 'comparison')}, {counts[0]} show a difference and "
        f"{counts[1]} that both are the "
        "same within 5 %."
    )


READING = (
    "The band is the equivalence margin of ±5 %. Filled dots are findings, hollow dots "
    "are not; grey rows are A/A tests."
)
