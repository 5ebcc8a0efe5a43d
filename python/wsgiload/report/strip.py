"""The intervals and resource samples of one cell as values over time. Pure.

Counters become differences over the actual time between two samples. Throttling is a share of CPU
periods, not of time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from wsgiload.limits.model import unreclaimable_bytes
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
    """One cell over time, in seconds since the start of its first interval.

    If there are more intervals than points, each point combines ``grouped`` intervals: the median
    of their p50, the highest p99 and maximum, and the sum of their failures.
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
    # CPU use of the supporting services, by name.
    services: Mapping[str, tuple[Busy, ...]]
    heat: Heat | None = None

    def busy_around(self, place: int, service: str | None = None) -> list[Busy]:
        """The samples of the server, or of a service, that overlap with one of the points."""
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
    max_points: int = 120,
    services: Mapping[str, Sequence[SampleRow]] | None = None,
) -> Strip | None:
    """The strip of one cell; None without recorded intervals."""
    if not intervals:
        return None
    rows = sorted(intervals, key=lambda row: row.start_ns)
    begin_ns, end_ns = rows[0].start_ns, rows[-1].start_ns + rows[-1].length_ns

    grouped = -(-len(rows) // max_points)
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
        busy=tuple(_busy(samples, window_ns, max_points)),
        cpu_limit=cell.cpu_limit,
        services={
            name: tuple(_busy(rows, window_ns, max_points))
            for name, rows in (services or {}).items()
        },
    )


def _middle_s(rows: Sequence[IntervalRow], begin_ns: int) -> float:
    end_ns = rows[-1].start_ns + rows[-1].length_ns
    return ((rows[0].start_ns + end_ns) / 2 - begin_ns) / 1e9


def _each(
    groups: Sequence[Sequence[IntervalRow]],
    figure: Callable[[IntervalRow], int | None],
    combine: Callable[[list[int]], int],
) -> tuple[int | None, ...]:
    """One value for each group, combined from the intervals that have one."""
    known = ([value for row in rows if (value := figure(row)) is not None] for rows in groups)
    return tuple(combine(values) if values else None for values in known)


def _busy(samples: Sequence[SampleRow], window_ns: tuple[int, int], max_points: int) -> list[Busy]:
    begin_ns, end_ns = window_ns
    inside = [sample for sample in samples if begin_ns <= sample.t_ns <= end_ns]
    # Counters are cumulative, so omitting samples loses no CPU time.
    inside = inside[:: -(-len(inside) // max_points) or 1]
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
        memory_bytes=unreclaimable_bytes(
            after.memory_anon_bytes, after.memory_shared_bytes, after.memory_kernel_bytes
        ),
        listen_queue=after.listen_queue,
    )


def _throttled_ratio(before: SampleRow, after: SampleRow) -> float | None:
    periods = _difference(before.nr_periods, after.nr_periods)
    throttled = _difference(before.nr_throttled, after.nr_throttled)
    return min(1.0, throttled / periods) if periods and throttled is not None else None


def _difference(first: int | None, last: int | None) -> int | None:
    return None if first is None or last is None else last - first
