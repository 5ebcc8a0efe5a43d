"""The comparisons as a forest plot: one row per pair and load level with its ratio and interval on
a logarithmic axis, and the equivalence margin. It draws no conclusions; ``comparison`` does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wsgiload.documents.over_cells import Comparison
from wsgiload.report import words
from wsgiload.report.over_runs import factor_of, load_words, ratio_words
from wsgiload.report.track import axis_of
from wsgiload.statistics.effect import SAME_WITHIN
from wsgiload.units import three_digits

MAX_ROWS = 30
MARGIN = (1 / (1 + SAME_WITHIN), 1 + SAME_WITHIN)
READING = (
    "The band is the equivalence margin of ±5 %. Filled dots: different or equivalent. Hollow "
    "dots: no significant difference. Grey rows are A/A tests."
)


@dataclass(frozen=True, slots=True)
class ForestRow:
    """One comparison; ``point`` and ``ends`` are positions in percent of the axis."""

    name: str
    point: float
    ends: tuple[float, float]
    ratio: str
    p: str
    p_adjusted: str
    # The servers differ, or they are equivalent.
    is_finding: bool
    # Both are the same server, so that any difference is noise.
    is_chance: bool


@dataclass(frozen=True, slots=True)
class Forest:
    """The rows with their axis."""

    label: str
    title: str
    caption: str
    margin: tuple[float, float]
    one: float
    ticks: list[tuple[float, str]]
    rows: list[ForestRow]
    reading: str = READING


def drawable(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons with an interval, at most ``MAX_ROWS``. A/A pairs come first, because they
    show the noise."""
    known = [entry for entry in comparisons if entry.interval_95 is not None]
    return sorted(known, key=lambda entry: not entry.same_server)[:MAX_ROWS]


def row_name(entry: Comparison) -> str:
    """ "gthread / sync at 500/s"; marks A/A pairs."""
    lead = "A/A: " if entry.same_server else ""
    return f"{lead}{entry.first} / {entry.second} at {load_words(entry)}"


def forest_of(
    comparisons: Sequence[Comparison],
    label: str,
    of: str,
    caption: str,
    name: Callable[[Comparison], str] = row_name,
) -> Forest | None:
    """The ratios ``of`` these comparisons; None if none has an interval."""
    entries = drawable(comparisons)
    factors = [factor_of(entry) for entry in entries]
    ends = [end for factor in factors for end in (factor.low, factor.high)]
    axis = axis_of([*MARGIN, *ends])
    if not entries or axis is None:
        return None
    return Forest(
        label=label,
        title=f"{entries[0].figure} ratio: {of}, with 95 % confidence interval",
        caption=caption,
        margin=(axis.at(MARGIN[0]), axis.at(MARGIN[1])),
        one=axis.at(1),
        ticks=axis.ticks(lambda tick: f"{three_digits(tick)}×"),
        rows=[
            ForestRow(
                name=name(entry),
                point=axis.at(factor.value),
                ends=(axis.at(factor.low), axis.at(factor.high)),
                ratio=ratio_words(entry),
                p=f"{factor.p:.3g}",
                p_adjusted=f"{factor.p_adjusted:.3g}",
                is_finding=entry.conclusion in ("different", "same"),
                is_chance=entry.same_server,
            )
            for entry, factor in zip(entries, factors, strict=True)
        ],
    )


def caption(comparisons: Sequence[Comparison]) -> str:
    """How many comparisons show a difference, and how many show equivalence."""
    pairs = [entry for entry in comparisons if not entry.same_server]
    counts = [
        sum(entry.conclusion == finding for entry in pairs) for finding in ("different", "same")
    ]
    if not pairs:
        return "A/A test (one server under two names): every difference is due to chance."
    return (
        f"{words.plural(len(pairs), 'comparison')}: {counts[0]} different, {counts[1]} equivalent "
        "within ±5 %."
    )
