"""Puts the intervals and the resource samples of one cell on one clock.

Pure: rows in, values over time out. Counters become differences over the time that truly passed
between two samples; a share of throttled periods is a share of periods, never of time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from wsgiload.report.cells import Cell
from wsgiload.report.run_files import IntervalRow, SampleRow

_MOST_SAMPLES = 300


@dataclass(frozen=True, slots=True)
class Busy:
    """CPU use between two samples."""

    start_s: float
    end_s: float
    cores: float
    throttled_ratio: float | None


@dataclass(frozen=True, slots=True)
class Strip:
    """One cell over time, in seconds since its first interval began."""

    cell: Cell
    length_s: float
    middles_s: tuple[float, ...]
    p50_ns: tuple[int | None, ...]
    p99_ns: tuple[int | None, ...]
    max_ns: tuple[int | None, ...]
    failed: tuple[int | None, ...]
    busy: tuple[Busy, ...]
    cpu_limit: float | None


def make_strip(
    cell: Cell, intervals: Sequence[IntervalRow], samples: Sequence[SampleRow]
) -> Strip | None:
    """The strip of one cell, or None when no interval of it was recorded."""
    if not intervals:
        return None
    rows = sorted(intervals, key=lambda row: row.start_ns)
    begin_ns, end_ns = rows[0].start_ns, rows[-1].start_ns + rows[-1].length_ns
    return Strip(
        cell=cell,
        length_s=(end_ns - begin_ns) / 1e9,
        middles_s=tuple((row.start_ns + row.length_ns / 2 - begin_ns) / 1e9 for row in rows),
        p50_ns=tuple(row.p50_ns for row in rows),
        p99_ns=tuple(row.p99_ns for row in rows),
        max_ns=tuple(row.max_ns for row in rows),
        failed=tuple(row.failed for row in rows),
        busy=tuple(_busy(samples, begin_ns, end_ns)),
        cpu_limit=cell.cpu_limit,
    )


def _busy(samples: Sequence[SampleRow], begin_ns: int, end_ns: int) -> list[Busy]:
    inside = [sample for sample in samples if begin_ns <= sample.t_ns <= end_ns]
    inside = inside[:: -(-len(inside) // _MOST_SAMPLES) or 1]
    return [
        _between(before, after, begin_ns)
        for before, after in pairwise(inside)
        if before.t_ns != after.t_ns
    ]


def _between(before: SampleRow, after: SampleRow, begin_ns: int) -> Busy:
    used_ns = after.cpu_usage_ns - before.cpu_usage_ns
    return Busy(
        start_s=(before.t_ns - begin_ns) / 1e9,
        end_s=(after.t_ns - begin_ns) / 1e9,
        cores=used_ns / (after.t_ns - before.t_ns),
        throttled_ratio=_throttled_ratio(before, after),
    )


def _throttled_ratio(before: SampleRow, after: SampleRow) -> float | None:
    periods = _difference(before.nr_periods, after.nr_periods)
    throttled = _difference(before.nr_throttled, after.nr_throttled)
    return min(1.0, throttled / periods) if periods and throttled is not None else None


def _difference(first: int | None, last: int | None) -> int | None:
    return None if first is None or last is None else last - first
