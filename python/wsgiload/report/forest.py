"""Charts that are part of a table and need no script: the comparisons as a forest plot, and the
ranked servers with their figure, interval and warnings, each on a logarithmic axis. They draw no
conclusions; ``comparison`` and ``ranking`` do."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from wsgiload.analysis.attempts import is_disturbed
from wsgiload.documents.answer import RankingEntry, RankingLevel
from wsgiload.documents.over_cells import Comparison
from wsgiload.documents.summary import Summary
from wsgiload.report import findings, words
from wsgiload.report.answer import answer_of
from wsgiload.report.cells import HEADLINE, Cell, Sweep, median_upper_ns
from wsgiload.report.first_screen import figure_text, has_failed, places_of, shown_levels
from wsgiload.report.over_runs import factor_of, load_words, ratio_words
from wsgiload.report.page import LIGHT
from wsgiload.report.panels import HEADLINE_QUANTILES
from wsgiload.report.recommendation import size_words
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


_ZEROS = re.compile(r"\.0+(?!\d)|(\.\d*[1-9])0+(?!\d)")
_MAX_TICKS = 7
# Between ends with a smaller ratio, ticks are evenly spaced values instead of decades.
_LINEAR_RATIO = 6
# Smaller differences do not fill the axis.
_MIN_RATIO = 1.5


@dataclass(frozen=True, slots=True)
class Axis:
    """The ends of the axis."""

    low: float
    high: float

    def at(self, value: float) -> float:
        """The position of the value; a value beyond an end is at this end."""
        inside = min(max(value, self.low), self.high)
        return round(100 * math.log(inside / self.low) / math.log(self.high / self.low), 2)

    def ticks(self, form: Callable[[float], str]) -> list[tuple[float, str]]:
        """The positions of round values, with their text: 5 ms, not 5.00 ms."""
        values = self._linear() if self.high < _LINEAR_RATIO * self.low else self._decades()
        return [(self.at(one), _ZEROS.sub(r"\1", form(one))) for one in values]

    def _linear(self) -> list[float]:
        least = (self.high - self.low) / (_MAX_TICKS - 1)
        power = 10 ** math.floor(math.log10(least))
        step = power * next(one for one in (1, 2, 5, 10) if one * power >= least)
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        return [place * step for place in range(first, last + 1)]

    def _decades(self) -> list[float]:
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        inside: list[float] = []
        for factors in ((1, 2, 5), (1, 3), (1,)):
            values = (factor * 10.0**power for power in range(first, last) for factor in factors)
            inside = [value for value in values if self.low <= value <= self.high]
            if len(inside) <= _MAX_TICKS:
                return inside
        return inside[:: math.ceil(len(inside) / _MAX_TICKS)]


def axis_of(values: Iterable[float]) -> Axis | None:
    """An axis with all of these values; None without a positive one."""
    positive = [value for value in values if value > 0]
    if not positive:
        return None
    low, high = min(positive), max(positive)
    margin = max(1.08, math.sqrt(_MIN_RATIO * low / high))
    return Axis(low / margin, high * margin)


@dataclass(frozen=True, slots=True)
class Row:
    """One server; ``point`` and ``ends`` are positions in percent of the axis, or None if nothing
    is drawn."""

    place: str
    label: str
    size: str
    series: int
    figure: str
    interval: str
    point: float | None
    ends: tuple[float, float] | None
    is_ranked: bool
    disturbed: str
    errors: str
    memory: str
    notes: list[str]


@dataclass(frozen=True, slots=True)
class RankingChart:
    """One load level; the servers of a group share a place."""

    heading: str
    ticks: list[tuple[float, str]]
    groups: list[list[Row]]


def ranking_charts(summary: Summary, sweep: Sweep, cautions: Sequence[str]) -> list[RankingChart]:
    """The chart of each level that the answer is about."""
    answer = summary.answer or answer_of(summary)
    return [
        _chart(level, sweep, cautions, is_placed=not has_failed(level, summary))
        for level in shown_levels(answer, summary)
    ]


def _chart(
    level: RankingLevel, sweep: Sweep, cautions: Sequence[str], *, is_placed: bool
) -> RankingChart:
    """The chart of one level; ``is_placed`` is false if no server has a place."""
    is_open = level.rate is not None
    figure, values = _drawn(level, sweep)
    intervals = {
        entry.label: entry.interval_ns
        for entry in level.entries
        if entry.interval_ns and entry.label in values and figure == "p99"
    }
    ends = [end for interval in intervals.values() for end in interval if end is not None]
    axis = axis_of([*values.values(), *ends])
    place_of = places_of(level.entries) if is_placed else {}

    def row(entry: RankingEntry) -> Row:
        label, cells = entry.label, _cells(entry, sweep)
        low, high = intervals.get(label, (None, None))
        text, _, interval = figure_text(entry, is_open=is_open).partition(" [")
        own = [one for one in cautions if _is_about(one, label)]
        if not own and cells and entry.status != "ranked":
            own = [findings.server_sentence(sweep, cells[0].label)]
        return Row(
            place=place_of.get(label, words.MISSING),
            label=label,
            size=size_words(entry),
            series=sweep.labels.index(cells[0].label) % len(LIGHT) if cells else 0,
            figure=text,
            interval=f"[{interval}" if interval else "",
            point=axis.at(values[label]) if axis and label in values else None,
            ends=(axis.at(low), 100.0 if high is None else axis.at(high)) if axis and low else None,
            is_ranked=entry.status == "ranked",
            disturbed=_disturbed(cells),
            errors=words.format_ratio(None if entry.goodput_per_s is None else entry.error_ratio),
            memory=words.format_bytes(entry.memory_peak_bytes),
            notes=own,
        )

    rows = [row(entry) for entry in level.entries]
    form = words.format_duration_ns if is_open else words.format_measured_rate
    return RankingChart(
        heading=f"{figure} at {level.level}",
        ticks=[] if axis is None else axis.ticks(form),
        groups=[list(group) for _, group in groupby(rows, _place_or_name)],
    )


def _is_about(caution: str, label: str) -> bool:
    """Whether the warning is about this server alone."""
    return re.match(rf"{re.escape(label)}(:|'s| (?!and ))", caution) is not None


def _place_or_name(row: Row) -> str:
    """What the rows of a group have in common."""
    return row.place if row.place != words.MISSING else row.label


def _drawn(level: RankingLevel, sweep: Sweep) -> tuple[str, Mapping[str, float]]:
    """The figure that is drawn, and its value for each server: the one that ranks or, without any
    value of it, the highest quantile with values. Of servers that are not ranked, it is drawn only
    if no server is."""
    ranked = [entry for entry in level.entries if entry.status in ("ranked", "errors")]
    entries = ranked or [entry for entry in level.entries if entry.status != "invalid"]
    if level.rate is None:
        return "goodput/s", _known({one.label: one.goodput_per_s for one in entries})
    values = _known({entry.label: entry.value_ns for entry in entries})
    for quantile in reversed(HEADLINE_QUANTILES):
        if not values and quantile < HEADLINE:
            medians = {one.label: median_upper_ns(_cells(one, sweep), quantile) for one in entries}
            if values := _known(medians):
                return words.quantile_name(quantile), values
    return words.quantile_name(HEADLINE), values


def _known(values: Mapping[str, float | None]) -> dict[str, float]:
    return {label: value for label, value in values.items() if value}


def _cells(entry: RankingEntry, sweep: Sweep) -> tuple[Cell, ...]:
    return tuple(cell for cell in sweep.cells if cell.id in entry.cell_ids)


def _disturbed(cells: Sequence[Cell]) -> str:
    """``disturbed``, or ``2 of 6 runs disturbed``; empty if none was."""
    count = sum(is_disturbed(cell.result) for cell in cells)
    if not count:
        return ""
    return "disturbed" if count == len(cells) else f"{count} of {len(cells)} runs disturbed"
