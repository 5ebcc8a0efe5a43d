"""The comparisons as a forest plot: one row per pair and load level with its factor and interval,
and the equivalence margin. It draws no conclusions; ``comparison`` does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wsgiload.documents.over_cells import Comparison
from wsgiload.documents.page_data import PageFactor, PageForest
from wsgiload.report import words
from wsgiload.report.over_runs import factor_of, load_words
from wsgiload.statistics.effect import SAME_WITHIN

Name = Callable[[Comparison], str]

MAX_ROWS = 30
HEADINGS = ("pair", "ratio", "95 % CI low", "95 % CI high", "p", "adjusted p")


def drawable(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons with an interval, at most ``MAX_ROWS``. A/A pairs come first, because they
    show the noise."""
    known = [entry for entry in comparisons if entry.interval_95 is not None]
    return sorted(known, key=lambda entry: not entry.same_server)[:MAX_ROWS]


def forest_data(
    comparisons: Sequence[Comparison],
    of: str = "first / second server",
    name: Name | None = None,
) -> PageForest | None:
    """The factors of ``drawable``; None if there are none. ``name`` returns the name of a row."""
    rows = drawable(comparisons)
    if not rows:
        return None
    return PageForest(
        title=f"{rows[0].figure} ratio: {of}, with 95 % confidence interval",
        margin=(1 / (1 + SAME_WITHIN), 1 + SAME_WITHIN),
        rows=tuple(_factor(entry, (name or row_name)(entry)) for entry in rows),
    )


def _factor(entry: Comparison, name: str) -> PageFactor:
    factor = factor_of(entry)
    return PageFactor(
        name=name,
        value=factor.value,
        low=factor.low,
        high=factor.high,
        is_finding=entry.conclusion in ("different", "same"),
        is_chance=entry.same_server,
    )


def row_name(entry: Comparison) -> str:
    """ "gthread / sync at 500/s"; marks A/A pairs."""
    lead = "A/A: " if entry.same_server else ""
    return f"{lead}{entry.first} / {entry.second} at {load_words(entry)}"


def row_numbers(entry: Comparison) -> tuple[str, ...]:
    """Factor, interval and both p values of a row, as text."""
    factor = factor_of(entry)
    numbers = (factor.value, factor.low, factor.high, factor.p, factor.p_adjusted)
    return tuple(f"{number:.3g}" for number in numbers)


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


READING = (
    "The band is the equivalence margin of ±5 %. Filled dots: different or equivalent. Hollow "
    "dots: no significant difference. Grey rows are A/A tests."
)
