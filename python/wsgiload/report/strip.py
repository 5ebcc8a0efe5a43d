"""Puts the intervals and the resource samples of one cell on one clock.

Pure: rows in, values over time out. Counters become differences over the time that truly passed
between two samples; a share of throttled periods is a share of periods, never of time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from wsgiload.report.cells import Cell
from wsgiload.report.run_files import Row

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


def make_strip(cell: Cell, intervals: Sequence[Row], samples: Sequence[Row]) -> Strip | None:
    """The strip of one cell, or None when no interval of it was recorded."""
    rows = sorted(
        (row for row in intervals if row["start_ns"] is not None),
        key=lambda row: row["start_ns"] or 0,
    )
    if not rows:
        return None
    begin_ns = rows[0]["start_ns"] or 0
    end_ns = (rows[-1]["start_ns"] or 0) + (rows[-1]["length_ns"] or 0)
    return Strip(
        cell=cell,
        length_s=(end_ns - begin_ns) / 1e9,
        middles_s=tuple(
            ((row["start_ns"] or 0) + (row["length_ns"] or 0) / 2 - begin_ns) / 1e9 for row in rows
        ),
        p50_ns=tuple(row["p50_ns"] for row in rows),
        p99_ns=tuple(row["p99_ns"] for row in rows),
        max_ns=tuple(row["max_ns"] for row in rows),
        failed=tuple(row["failed"] for row in rows),
        busy=tuple(_busy(samples, begin_ns, end_ns)),
        cpu_limit=cell.held_limit("cpus"),
    )


def _busy(samples: Sequence[Row], begin_ns: int, end_ns: int) -> list[Busy]:
    inside = [row for row in samples if row["t_ns"] is not None and row["cpu_usage_ns"] is not None]
    inside = [row for row in inside if begin_ns <= (row["t_ns"] or 0) <= end_ns]
    inside = inside[:: -(-len(inside) // _MOST_SAMPLES) or 1]
    return [
        _between(before, after, begin_ns)
        for before, after in pairwise(inside)
        if before["t_ns"] != after["t_ns"]
    ]


def _between(before: Row, after: Row, begin_ns: int) -> Busy:
    start_ns, end_ns = before["t_ns"] or 0, after["t_ns"] or 0
    used_ns = _difference(before, after, "cpu_usage_ns") or 0
    periods, throttled = (
        _difference(before, after, "nr_periods"),
        _difference(before, after, "nr_throttled"),
    )
    ratio = min(1.0, throttled / periods) if periods and throttled is not None else None
    return Busy(
        (start_ns - begin_ns) / 1e9, (end_ns - begin_ns) / 1e9, used_ns / (end_ns - start_ns), ratio
    )


def _difference(before: Row, after: Row, name: str) -> int | None:
    first, last = before.get(name), after.get(name)
    return None if first is None or last is None else last - first
