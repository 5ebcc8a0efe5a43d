"""The next trial and the standings so far, for progress displays of a sweep. Pure; conclusions are
drawn in ``analysis`` when the cells are complete."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from wsgiload.analysis.aggregate import GOODPUT, Figure, Runs, counted_runs, figure_of
from wsgiload.analysis.races import Track
from wsgiload.documents.cell_result import CellResult
from wsgiload.experiment.plan import Cell
from wsgiload.procedures.race import ObjectiveState
from wsgiload.report.words import format_duration_ns, format_measured_per_s, join_words, plural
from wsgiload.statistics.leading import Standing, State

MAX_OPEN = 3
# A wider interval says nothing yet.
MAX_WIDTH = 20.0


@dataclass(frozen=True, slots=True)
class Outlook:
    """The trial after the one that begins, and the standings; None if unknown."""

    upcoming: Cell | None = None
    standing: str | None = None


def standing_words(state: State | ObjectiveState) -> str:
    """``a leads after 3 blocks; open: b 1.08× [0.95, 1.23]; 2 dropped out``, or ``a is the leanest
    of 4 configurations that may meet the objective; 2 dropped out``."""
    if isinstance(state, ObjectiveState):
        dropped = f"; {len(state.dropped)} dropped out" if state.dropped else ""
        count = len(state.contenders)
        place = "only" if count == 1 else f"leanest of {count}"
        what = plural(count, "configuration").partition(" ")[2]
        return f"{state.contenders[0]} is the {place} {what} that may meet the objective{dropped}"
    if state.leader is None:
        return "no server has a result yet"
    open_now = [one for one in state.standings if one.relation == "open"]
    tied = [one.server for one in state.standings if one.relation == "tied"]
    parts = [f"{state.leader} leads"]
    if tied:
        parts.append(f"tied: {join_words(tied)}")
    if open_now:
        shown = [_ratio_words(one) for one in open_now[:MAX_OPEN]]
        more = len(open_now) - len(shown)
        parts.append(f"open: {', '.join(shown)}" + (f" and {more} more" if more else ""))
    if state.dropped:
        parts.append(f"{len(state.dropped)} dropped out")
    return "; ".join(parts)


def _ratio_words(standing: Standing) -> str:
    if standing.ratio is None or standing.interval is None:
        return standing.server
    low, high = standing.interval
    ends = f" [{low:.2f}, {high:.2f}]" if high < MAX_WIDTH * low else ""
    return f"{standing.server} {standing.ratio:.2f}×{ends}"


def ranking_words(track: Track, rivals: Sequence[str], cells: Sequence[CellResult]) -> str | None:
    """``p99 so far: a 1.20 ms, b 3.40 ms``: the medians of the runs on this track, the best first;
    None if there are none, or no rival."""
    runs = {
        level.server: of_level
        for level, of_level in counted_runs(cells).items()
        if (level.rate, level.connections) == (track.rate, track.connections)
        and level.server in rivals
    }
    if len(rivals) < 2:
        return None

    figures: tuple[Figure, ...] = (GOODPUT,) if track.rate is None else ("p99", "p50")
    for figure in figures:
        medians = _medians(runs, figure)
        if medians:
            return f"{figure} so far: {_listed(medians, figure)}"
    return None


def _medians(runs_by_server: Mapping[str, Runs], figure: Figure) -> dict[str, float]:
    """The medians of the servers that have a value."""
    medians = {}
    for server, runs in runs_by_server.items():
        values = [value for run in runs.values() if (value := figure_of(run, figure)) is not None]
        if values:
            medians[server] = median(values)
    return medians


def _listed(medians: Mapping[str, float], figure: Figure) -> str:
    is_rate = figure == GOODPUT
    order = sorted(medians, key=medians.__getitem__, reverse=is_rate)
    return ", ".join(f"{server} {_value_words(medians[server], is_rate)}" for server in order)


def _value_words(value: float, is_rate: bool) -> str:
    if is_rate:
        return format_measured_per_s(value)
    return format_duration_ns(value) if math.isfinite(value) else "infinite"
