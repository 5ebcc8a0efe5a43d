"""The trend of each cell over several stored runs. Pure, from summaries.

Each run is compared with the first run in which the cell has a valid result, as ``comparison``
compares two stored runs. The other runs show how much sessions differ, and all claims share one
error probability, most of which belongs to the last run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from wsgiload.analysis.aggregate import ServerLevel, counted_runs, level_of
from wsgiload.analysis.comparison import (
    compare_summaries,
    how_ended,
    unlike_hosts,
    unlike_plans,
    unlike_versions,
)
from wsgiload.analysis.ranking import rank
from wsgiload.analysis.repeats import NOTHING_LEARNED, Session, learn
from wsgiload.documents.answer import RankingEntry
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.over_cells import Comparison
from wsgiload.documents.run_info import HostFacts
from wsgiload.documents.summary import Summary
from wsgiload.statistics.effect import DECISIVE_SHARE

MIN_STORED_RUNS = 2


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A stored sweep, with the name under which it is shown."""

    name: str
    started: datetime
    summary: Summary
    host: HostFacts | None
    session: Session | None = None


@dataclass(frozen=True, slots=True)
class TrendCell:
    """A server at one load level with one app."""

    level: ServerLevel
    app: str | None


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """The result of a cell in one stored run, with the number of its trials and of the valid ones.
    ``comparison`` is None if no trial is valid, and for the run that others are compared with."""

    run: int
    entry: RankingEntry
    valid: int
    trials: int
    comparison: Comparison | None = None


@dataclass(frozen=True, slots=True)
class CellTrend:
    """A cell in the order of the runs that have it."""

    cell: TrendCell
    points: tuple[TrendPoint, ...]


@dataclass(frozen=True, slots=True)
class RunDifference:
    """A difference, other than the figures, between one run and those that are compared with it.
    Without ``first``, it concerns one run alone."""

    sentence: str
    first: str | None
    runs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Trend:
    """Stored runs by start time, the cells that at least two of them have, and what else may
    explain a change."""

    runs: Sequence[StoredRun]
    cells: Sequence[CellTrend]
    differences: Sequence[RunDifference]


def trend_of(runs: Sequence[StoredRun]) -> Trend:
    """The trend over these runs, in any order."""
    ordered = sorted(runs, key=lambda run: run.started)
    by_cell: dict[TrendCell, list[TrendPoint]] = {}
    for place, run in enumerate(ordered):
        for cell, point in _points(place, run.summary):
            by_cell.setdefault(cell, []).append(point)

    known: dict[tuple[int, int], Mapping[ServerLevel, Comparison]] = {}
    cells = [
        _compared(cell, points, ordered, known)
        for cell, points in by_cell.items()
        if len(points) >= MIN_STORED_RUNS
    ]
    return Trend(ordered, cells, _differences(ordered, sorted(known)))


def _points(place: int, summary: Summary) -> list[tuple[TrendCell, TrendPoint]]:
    counted = counted_runs(summary.cells)
    trials: dict[ServerLevel, set[int]] = {}
    for one in summary.cells:
        trials.setdefault(level_of(one), set()).add(one.run)

    points = []
    for ranked in rank(summary.cells, allowed_errors=1.0):
        for entry in ranked.entries:
            level = ServerLevel(entry.label, ranked.rate, ranked.connections)
            valid = sum(map(_is_valid, counted[level].values()))
            point = TrendPoint(place, entry, valid, len(trials[level]))
            points.append((TrendCell(level, ranked.app), point))
    return points


def _is_valid(cell: CellResult) -> bool:
    return cell.failure is None and cell.verdict is not None and cell.verdict.status != "invalid"


def _compared(
    cell: TrendCell,
    points: Sequence[TrendPoint],
    runs: Sequence[StoredRun],
    known: dict[tuple[int, int], Mapping[ServerLevel, Comparison]],
) -> CellTrend:
    """``known`` keeps the comparisons of two runs, which are made for all of their cells."""
    compared: list[TrendPoint] = []
    first = None
    for point in points:
        if first is None or not point.valid:
            compared.append(point)
        else:
            pair = (first, point.run)
            if pair not in known:
                known[pair] = _by_level(runs, *pair)
            compared.append(replace(point, comparison=known[pair][cell.level]))
        if first is None and point.valid:
            first = point.run
    return CellTrend(cell, tuple(compared))


def _by_level(
    runs: Sequence[StoredRun], first: int, second: int
) -> Mapping[ServerLevel, Comparison]:
    base = runs[first].session
    others = [run.session for at, run in enumerate(runs) if at not in (first, second)]
    learned = learn(base, [one for one in others if one is not None]) if base else NOTHING_LEARNED
    compared = compare_summaries(
        runs[first].summary,
        runs[second].summary,
        learned=learned,
        share=_share(second, len(runs)),
    )
    return {ServerLevel(one.first, one.rate, one.connections): one for one in compared}


def _share(run: int, runs: int) -> float:
    """Of the error probability, for the comparison of this run with the first one."""
    if runs == MIN_STORED_RUNS:
        return 1.0
    return DECISIVE_SHARE if run == runs - 1 else (1 - DECISIVE_SHARE) / (runs - MIN_STORED_RUNS)


def _differences(
    runs: Sequence[StoredRun], pairs: Sequence[tuple[int, int]]
) -> Sequence[RunDifference]:
    """Incomplete runs, then what differs between the compared ones, each sentence once."""
    compared = sorted({place for pair in pairs for place in pair})
    incomplete = [
        RunDifference(f"{ended}.", None, (run.name,))
        for run in (runs[place] for place in compared)
        if (ended := how_ended(run.summary)) is not None
    ]

    differences: dict[tuple[str, str], list[str]] = {}
    for unlike in (_unlike_hosts, _unlike_plans, _unlike_versions):
        for before, now in ((runs[first], runs[second]) for first, second in pairs):
            for sentence in unlike(before, now):
                differences.setdefault((sentence, before.name), []).append(now.name)
    return incomplete + [
        RunDifference(sentence, first, tuple(names))
        for (sentence, first), names in differences.items()
    ]


def _unlike_hosts(before: StoredRun, now: StoredRun) -> list[str]:
    return unlike_hosts(before.host, now.host)


def _unlike_plans(before: StoredRun, now: StoredRun) -> list[str]:
    return unlike_plans(before.summary, now.summary)


def _unlike_versions(before: StoredRun, now: StoredRun) -> list[str]:
    return unlike_versions(before.summary, now.summary)
