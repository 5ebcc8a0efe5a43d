"""The trend over stored runs: whether the servers became slower, what else differed between the
runs, and a table for each cell. It computes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.text import Text

from wsgiload.analysis.aggregate import GOODPUT
from wsgiload.analysis.comparison import short_revision
from wsgiload.analysis.run_trend import CellTrend, RunDifference, Trend, TrendPoint
from wsgiload.documents.over_cells import ComparedFigure, Comparison
from wsgiload.report import words
from wsgiload.report.answer_box import fitting_table
from wsgiload.report.cautions import at_most_five
from wsgiload.report.change import by_size, verdict_words
from wsgiload.report.over_runs import change_sentence, level_text, ratio_words, sessions_note
from wsgiload.report.recommendation import p99_words
from wsgiload.report.terminal import full_width

# With more tables, only those of changed cells are shown.
MAX_TABLES = 3
# Columns that a narrow terminal omits, the first one first.
_DISPENSABLE = ("revision", "goodput")
NOTE = "Each run is compared with the first run in which the cell has a valid result."


def print_trend(trend: Trend, console: Console, *, verbose: bool) -> None:
    """Print the answer and its warnings, then the tables; ``verbose`` shows all of them."""
    with full_width(console):
        console.print(Group(*_parts(trend, console.width, verbose=verbose)))


def _parts(trend: Trend, width: int, *, verbose: bool) -> Iterator[RenderableType]:
    first, *_, last = trend.runs
    count = len(trend.runs)
    question = f"Did a server become slower over {count} runs, from {first.name} to {last.name}?"
    yield Text(question, style="dim")
    yield Text(sentence(trend), style="bold")

    warnings = trend_warnings(trend)
    shown_warnings = warnings if verbose else at_most_five(warnings, " warnings: see --verbose")
    yield from (Text(f"• {warning}", style="yellow") for warning in shown_warnings)

    is_short = verbose or len(trend.cells) <= MAX_TABLES
    shown = [cell for cell in trend.cells if is_short or is_changed(cell)]
    for cell in shown:
        yield Text(f"\n{_cell_words(cell, trend)}", style="bold")
        yield fitting_table(*_table(cell, trend), _DISPENSABLE, width)
    hidden = [cell for cell in trend.cells if cell not in shown]
    if hidden:
        yield Text(_hidden_words(hidden))
    compared = [one.comparison for cell in trend.cells for one in cell.points if one.comparison]
    yield Text(f"{NOTE} {sessions_note(compared)}".rstrip(), style="dim")


# --- the answer


def sentence(trend: Trend) -> str:
    """What changed most from the first to the last run of each cell."""
    last = [cell.points[-1].comparison for cell in trend.cells]
    ranked = sorted((one for one in last if one is not None), key=by_size)
    judged = [one for one in ranked if one.conclusion != "no inference"]
    if not judged:
        largest = f": {change_sentence(ranked[0])}" if ranked else ""
        return f"The first and the last run cannot be compared{largest}."

    unjudged = len(trend.cells) - len(judged)
    others = f" {words.plural(unjudged, 'cell')} cannot be compared." if unjudged else ""
    changed = [one for one in judged if one.conclusion == "different"]
    if not changed:
        return f"{_unchanged(trend, judged)}{others}"
    directions = Counter(map(direction, changed))
    counts = ", ".join(f"{count} {name}" for name, count in directions.most_common())
    largest = "Largest change: " if len(changed) > 1 else ""
    return (
        f"{len(changed)} of {words.plural(len(trend.cells), 'cell')} changed from the first to the "
        f"last run ({counts}). {largest}{change_sentence(changed[0])}.{others}"
    )


def _unchanged(trend: Trend, judged: Sequence[Comparison]) -> str:
    figures = words.join_words(sorted({one.figure for one in judged}))
    same = sum(one.conclusion == "same" for one in judged)
    are = "is" if same == 1 else "are"
    known = f"; {words.plural(same, 'cell')} {are} equivalent within ±5 %" if same else ""
    text = f"No significant change in {figures} from the first to the last run{known}."

    other = next((one for one in judged if _changed_others(one)), None)
    if other is not None:
        return f"{text} Another figure changed: {change_sentence(other)}."
    between = sum(map(is_changed, trend.cells))
    changed_cells = words.plural(between, "cell")
    return f"{text} {changed_cells} changed in an earlier run." if between else text


def direction(entry: Comparison | ComparedFigure) -> str:
    """``slower`` (a longer response time or a lower goodput) or ``faster``."""
    is_larger = (entry.factor or 1.0) > 1
    return "slower" if is_larger != (entry.figure == GOODPUT) else "faster"


def is_changed(cell: CellTrend) -> bool:
    """Whether any figure of any run differs from the first run's."""
    comparisons = (point.comparison for point in cell.points if point.comparison is not None)
    return any(one.conclusion == "different" or _changed_others(one) for one in comparisons)


def _changed_others(entry: Comparison) -> Sequence[ComparedFigure]:
    return [one for one in entry.others if one.conclusion == "different"]


# --- warnings


def trend_warnings(trend: Trend) -> list[str]:
    """Cells whose last run is not valid, then one line for each pair of runs with their other
    differences."""
    invalid = [
        f"{_cell_words(cell, trend)}: {_not_valid(cell.points[-1])} in its last run, "
        f"{trend.runs[cell.points[-1].run].name}"
        for cell in trend.cells
        if not cell.points[-1].valid
    ]
    by_runs: dict[str, list[str]] = {}
    for difference in trend.differences:
        by_runs.setdefault(_lead(difference), []).append(difference.sentence)
    used = {point.run for cell in trend.cells for point in cell.points}
    unused = [
        f"{run.name} has no server and load level in common with the other runs"
        for place, run in enumerate(trend.runs)
        if place not in used
    ]
    return [
        *invalid,
        *(" ".join([lead, *sentences]) for lead, sentences in by_runs.items()),
        *unused,
    ]


def _lead(difference: RunDifference) -> str:
    names = words.join_names(difference.runs)
    return names if difference.first is None else f"{names}, compared with {difference.first}:"


def _not_valid(point: TrendPoint) -> str:
    return "failed" if point.entry.status == "failed" else "invalid"


def _hidden_words(hidden: Sequence[CellTrend]) -> str:
    open_cells = sum(not _is_judged(cell) for cell in hidden)
    unchanged = len(hidden) - open_cells
    parts = [f"{words.plural(unchanged, 'cell')} without a significant change"] if unchanged else []
    parts += [f"{words.plural(open_cells, 'cell')} that cannot be compared"] if open_cells else []
    return f"Not shown: {words.join_words(parts)}. See --verbose."


def _is_judged(cell: CellTrend) -> bool:
    last = cell.points[-1].comparison
    return last is not None and last.conclusion != "no inference"


# --- the tables


def _cell_words(cell: CellTrend, trend: Trend) -> str:
    """``waitress at 500/s``, with the app if there are several."""
    level, app = cell.cell.level, cell.cell.app
    has_several = len({one.cell.app for one in trend.cells}) > 1
    where = f"{level.server} at {level_text(level.rate, level.connections)}"
    return f"{where}, app {app or 'unknown'}" if has_several else where


def _table(cell: CellTrend, trend: Trend) -> tuple[list[str], list[list[str]]]:
    """Headings and rows. The compared figure is part of the heading unless it differs by row."""
    compared = (point.comparison for point in cell.points if point.comparison is not None)
    figures = {one.figure for one in compared}
    change = f"{figures.pop()} change" if len(figures) == 1 else "change"
    headings = ["run", "revision", "p99 [95 % CI]", "goodput", change, "verdict"]
    return headings, [_row(point, trend, has_figure=change == "change") for point in cell.points]


def _row(point: TrendPoint, trend: Trend, *, has_figure: bool) -> list[str]:
    run = trend.runs[point.run]
    revision = run.summary.experiment.app_revision
    return [
        run.name,
        words.MISSING if revision is None else short_revision(revision),
        p99_words(point.entry) if point.valid else _not_valid(point),
        words.format_measured_per_s(point.entry.goodput_per_s) if point.valid else words.MISSING,
        _change_words(point.comparison, has_figure=has_figure),
        _verdict(point),
    ]


def _change_words(entry: Comparison | None, *, has_figure: bool) -> str:
    if entry is None or entry.factor is None:
        return words.MISSING
    return f"{entry.figure} {ratio_words(entry)}" if has_figure else ratio_words(entry)


def _verdict(point: TrendPoint) -> str:
    """The conclusion, the other figures that differ, and how many trials do not count."""
    if not point.valid:
        return f"not compared: {_not_valid(point)}"
    invalid = point.trials - point.valid
    note = f" ({invalid} of {words.plural(point.trials, 'trial')} not valid)" if invalid else ""
    if point.comparison is None:
        return f"first run{note}"
    return f"{_conclusion(point.comparison)}{note}"


def _conclusion(entry: Comparison) -> str:
    if entry.conclusion == "different":
        return direction(entry)
    if entry.conclusion == "no inference":
        return f"not compared: {entry.reason}"
    others = "".join(f"; {one.figure} {direction(one)}" for one in _changed_others(entry))
    return f"{verdict_words(entry)}{others}"
