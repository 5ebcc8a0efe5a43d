"""One cell as a heatmap: counts of correct responses by time and response time, and the columns in
which slow requests coincided with an event. Pure.

The counts come from the intervals' histograms without interpolation. If there are more intervals
than columns, adjacent ones are added.
"""

from __future__ import annotations

import base64
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wsgiload._loadgen import Histogram
from wsgiload.attribution import spans
from wsgiload.attribution.evidence import Flight, overlaps, tail_of
from wsgiload.attribution.spans import CFS_PERIOD_NS, steps_of
from wsgiload.documents.load_report import Interval, LoadReport
from wsgiload.documents.page_data import PageHeat, PageMark
from wsgiload.limits.model import Counters
from wsgiload.report.run_files import SampleRow
from wsgiload.sampling.sampler import Sample
from wsgiload.units import NS_PER_S

# Bin edges per decade (Renard series, ISO 3), from fine to coarse; the finest that fits is used.
_STEPS: tuple[tuple[float, ...], ...] = (
    (1, 1.25, 1.6, 2, 2.5, 3.15, 4, 5, 6.3, 8),
    (1, 1.6, 2.5, 4, 6.3),
    (1, 3.15),
    (1,),
)
MAX_COLUMNS = 120
# Below it, edges would not be whole nanoseconds.
_MIN_EDGE_NS = 1_000
_MIN_CLASSES, _MAX_CLASSES = 8, 30
# A column is marked if at least this share of its slowest requests overlapped with an event.
MARKED_SHARE = 0.5
# Names of the events of an attribution.
_EVENTS = {
    "throttled": "CPU throttling",
    "cpu_wait": "CPU contention",
    "paused": "server stall",
    "memory_pressure": "memory pressure",
}
SCALE = "Darker bins of a heatmap contain more responses (logarithmic color scale)."
MARKS = (
    "The slowest requests of the trial are assigned to columns by scheduled send time. A triangle "
    "marks a column if at least half of the requests assigned to it overlapped CPU throttling, CPU "
    "contention, a server stall or memory pressure."
)


@dataclass(frozen=True, slots=True)
class Heat:
    """Counts of correct responses by time (columns) and response time (classes, lowest first)."""

    ends_s: tuple[float, ...]
    edges_ns: tuple[int, ...]
    counts: tuple[tuple[int, ...], ...]
    # How many of the slowest requests were scheduled in each column; empty if not recorded.
    slowest: tuple[int, ...]
    # For each column, the events that at least half of these requests overlapped, with the number
    # of requests.
    signals: tuple[tuple[tuple[str, int], ...], ...]

    def texts(self) -> list[str]:
        """The coinciding events of each column, such as "throttling (12 of 14)"."""
        return [
            ", ".join(f"{name} ({count} of {slowest})" for name, count in signals)
            for slowest, signals in zip(self.slowest, self.signals, strict=True)
        ]

    def data(self) -> PageHeat:
        """The heatmap's data for the page."""
        return PageHeat(
            ends_s=self.ends_s,
            edges_ns=self.edges_ns,
            counts=self.counts,
            marks=tuple(
                PageMark(column=place, text=text) for place, text in enumerate(self.texts()) if text
            ),
        )


def make_heat(load: LoadReport, samples: Sequence[SampleRow], max_fields: int) -> Heat | None:
    """The heatmap of one cell with at most about this many fields; None without histograms."""
    intervals = sorted(load.intervals, key=lambda one: one.start_ns)
    buckets = [_buckets(one) for one in intervals]
    values = [value for interval in buckets for value, _ in interval]
    if not values:
        return None

    classes = max(_MIN_CLASSES, min(_MAX_CLASSES, max_fields // 24))
    edges = _edges(min(values), max(values), classes)
    columns = max(1, min(MAX_COLUMNS, max_fields // (len(edges) - 1)))
    grouped = -(-len(intervals) // columns)
    groups = [
        range(first, min(first + grouped, len(intervals)))
        for first in range(0, len(intervals), grouped)
    ]
    begin_ns = intervals[0].start_ns
    ends_ns = [intervals[group[-1]].start_ns + intervals[group[-1]].length_ns for group in groups]
    slowest, signals = _coincidences(load, samples, (begin_ns, *ends_ns))
    return Heat(
        ends_s=tuple(round((end_ns - begin_ns) / NS_PER_S, 3) for end_ns in ends_ns),
        edges_ns=tuple(edges),
        counts=tuple(_column([buckets[place] for place in group], edges) for group in groups),
        slowest=slowest,
        signals=signals,
    )


def _buckets(interval: Interval) -> list[tuple[int, int]]:
    if interval.hdr_v2 is None:
        return []
    return Histogram.from_hdr_v2(base64.b64decode(interval.hdr_v2)).buckets()


def _edges(low_ns: int, high_ns: int, max_classes: int) -> list[int]:
    """Round edges around all values, as fine as this number of classes allows."""
    edges: list[int] = []
    for steps in _STEPS:
        edges = list(_between(low_ns, high_ns, steps))
        if len(edges) - 1 <= max_classes:
            break
    return edges


def _between(low_ns: int, high_ns: int, steps: Sequence[float]) -> Iterator[int]:
    """The edges from the last one at or below the lowest value to the first one above the
    highest."""
    power = 10 ** (len(str(max(_MIN_EDGE_NS, low_ns))) - 1)
    before: int | None = None
    while True:
        for step in steps:
            edge = round(step * power)
            if edge <= low_ns:
                before = edge
                continue
            if before is not None:
                yield before
                before = None
            yield edge
            if edge > high_ns:
                return
        power *= 10


def _column(parts: Sequence[Sequence[tuple[int, int]]], edges: Sequence[int]) -> tuple[int, ...]:
    counts = [0] * (len(edges) - 1)
    for buckets in parts:
        for value, count in buckets:
            counts[min(max(bisect_right(edges, value) - 1, 0), len(counts) - 1)] += count
    return tuple(counts)


def _coincidences(
    load: LoadReport, samples: Sequence[SampleRow], bounds_ns: Sequence[int]
) -> tuple[tuple[int, ...], tuple[tuple[tuple[str, int], ...], ...]]:
    """For each column, the number of slowest requests that were scheduled in it, and the events
    that they overlapped."""
    tail = tail_of(load)
    if tail is None:
        return (), ()
    columns: list[list[Flight]] = [[] for _ in bounds_ns[1:]]
    for flight in tail.slowest:
        place = bisect_right(bounds_ns, flight[0]) - 1
        if 0 <= place < len(columns):
            columns[place].append(flight)

    by_event = _spans(samples)
    marked = tuple(tuple(_overlapped(flights, by_event)) for flights in columns)
    return tuple(len(flights) for flights in columns), marked


def _overlapped(
    flights: Sequence[Flight], by_event: dict[str, list[spans.Span]]
) -> Iterator[tuple[str, int]]:
    for event, periods in by_event.items():
        count = sum(overlaps(flight, periods) for flight in flights)
        if count and count >= MARKED_SHARE * len(flights):
            yield _EVENTS[event], count


def _spans(samples: Sequence[SampleRow]) -> dict[str, list[spans.Span]]:
    """The spans of each event, from the stored samples."""
    steps = steps_of([_sample(row) for row in samples], CFS_PERIOD_NS)
    return {
        "throttled": spans.throttled(steps),
        "cpu_wait": spans.cpu_wait(steps),
        "paused": spans.paused(steps),
        "memory_pressure": spans.memory_pressure(steps),
    }


def _sample(row: SampleRow) -> Sample:
    counters = Counters(
        cpu_usage_ns=row.cpu_usage_ns,
        nr_periods=row.nr_periods,
        nr_throttled=row.nr_throttled,
        listen_queue=row.listen_queue,
        psi_cpu_some_ns=row.psi_cpu_some_ns,
        psi_cpu_full_ns=row.psi_cpu_full_ns,
        psi_memory_some_ns=row.psi_memory_some_ns,
        memory_high=row.memory_high,
    )
    return Sample(row.t_ns, 0, counters, row.width_ns or 0)


def fields_of_each(timelines: int, all_fields: int = 16_000) -> int:
    """The maximum fields of each heatmap on a page with this many, which limits the page's size."""
    return all_fields // max(1, timelines)
