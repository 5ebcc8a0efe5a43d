"""Puts the intervals and the resource samples of one cell on one clock.

Pure: rows in, values over time out. Counters become differences over the time that truly passed
between two samples; a share of throttled periods is a share of periods, never of time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from wsgiload.report.cells import Cell
from wsgiload.report.heat import Heat
from wsgiload.report.run_files import IntervalRow, SampleRow


@dataclass(frozen=True, slots=True)
class Busy:
    """CPU use between two samples."""

    start_s: float
    end_s: float
    cores: float
    throttled_ratio: float | None
    memory_bytes: int | None
    listen_queue: int | None


@dataclass(frozen=True, slots=True)
class Strip:
    """One cell over time, in seconds since its first interval began.

    Where it has more intervals than points may be drawn, each point stands for ``grouped`` of them:
    the median of their p50, the highest p99 and maximum, and all of their failures.
    """

    cell: Cell
    grouped: int
    length_s: float
    middles_s: tuple[float, ...]
    p50_ns: tuple[int | None, ...]
    p99_ns: tuple[int | None, ...]
    max_ns: tuple[int | None, ...]
    failed: tuple[int | None, ...]
    busy: tuple[Busy, ...]
    cpu_limit: float | None
    # The supporting services, by name.
    services: Mapping[str, tuple[Busy, ...]]
    heat: Heat | None = None

    def busy_around(self, place: int, service: str | None = None) -> list[Busy]:
        """The spans of the server, or of a service, that overlap one of the intervals."""
        busy = self.busy if service is None else self.services[service]
        half_s = self.length_s / max(1, len(self.middles_s)) / 2
        middle_s = self.middles_s[place]
        return [
            one for one in busy if one.end_s > middle_s - half_s and one.start_s < middle_s + half_s
        ]


def make_strip(
    cell: Cell,
    intervals: Sequence[IntervalRow],
    samples: Sequence[SampleRow],
    most_points: int = 120,
    services: Mapping[str, Sequence[SampleRow]] | None = None,
) -> Strip | None:
    """The strip of one cell, or None when no interval of it was recorded."""
    if not intervals:
        return None
    rows = sorted(intervals, key=lambda row: row.start_ns)
    begin_ns, end_ns = rows[0].start_ns, rows[-1].start_ns + rows[-1].length_ns

    grouped = -(-len(rows) // most_points)
    groups = [rows[start : start + grouped] for start in range(0, len(rows), grouped)]
    window_ns = (begin_ns, end_ns)
    return Strip(
        cell=cell,
        grouped=grouped,
        length_s=(end_ns - begin_ns) / 1e9,
        middles_s=tuple(_middle_s(group, begin_ns) for group in groups),
        p50_ns=_each(groups, lambda row: row.p50_ns, lambda values: int(median(values))),
        p99_ns=_each(groups, lambda row: row.p99_ns, max),
        max_ns=_each(groups, lambda row: row.max_ns, max),
        failed=_each(groups, lambda row: row.failed, sum),
        busy=tuple(_busy(samples, window_ns, most_points)),
        cpu_limit=cell.cpu_limit,
        services={
            name: tuple(_busy(of_service, window_ns, most_points))
            for name, of_service in (services or {}).items()
        },
    )


def _middle_s(rows: Sequence[IntervalRow], begin_ns: int) -> float:
    end_ns = rows[-1].start_ns + rows[-1].length_ns
    return ((rows[0].start_ns + end_ns) / 2 - begin_ns) / 1e9


def _each(
    groups: Sequence[Sequence[IntervalRow]],
    figure: Callable[[IntervalRow], int | None],
    together: Callable[[list[int]], int],
) -> tuple[int | None, ...]:
    """One value for each group, of those of its intervals that have one."""
    known = ([value for row in rows if (value := figure(row)) is not None] for rows in groups)
    return tuple(together(values) if values else None for values in known)


def _busy(samples: Sequence[SampleRow], window_ns: tuple[int, int], most_points: int) -> list[Busy]:
    begin_ns, end_ns = window_ns
    inside = [sample for sample in samples if begin_ns <= sample.t_ns <= end_ns]
    # Counters keep what lies between two samples, so nothing is lost by leaving samples out.
    inside = inside[:: -(-len(inside) // most_points) or 1]
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
        memory_bytes=after.memory_bytes,
        listen_queue=after.listen_queue,
    )


def _throttled_ratio(before: SampleRow, after: SampleRow) -> float | None:
    periods = _difference(before.nr_periods, after.nr_periods)
    throttled = _difference(before.nr_throttled, after.nr_throttled)
    return min(1.0, throttled / periods) if periods and throttled is not None else None


def _difference(first: int | None, last: int | None) -> int | None:
    return None if first is None or last is None else last - first
