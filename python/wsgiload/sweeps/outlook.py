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
from wsgiload.report.words import format_duration_ns, format_measured_per_s, join_words, plural
from wsgiload.statistics.race import RaceState


@dataclass(frozen=True, slots=True)
class Outlook:
    """The trial after the one that begins, and the standings; None if unknown."""

    upcoming: Cell | None = None
    standing: str | None = None
    # Seconds until the end if known exactly, not estimated.
    left_s: float | None = None


def race_words(state: RaceState, rounds: int, *, by_objective: bool) -> str:
    """``a leads b and c after 3 rounds; 2 dropped out``; 0 rounds means after short trials."""
    leader, *others = state.contenders
    after = f"after {plural(rounds, 'round')}" if rounds else "after short trials"
    if by_objective:
        leads = f"of the configurations that may meet the objective, {leader} is the leanest"
    elif others:
        leads = f"{leader} leads {join_words(others)}"
    else:
        leads = f"{leader} is the only one left"
    dropped = f"; {len(state.dropped)} dropped out" if state.dropped else ""
    return f"{leads} {after}{dropped}"


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
