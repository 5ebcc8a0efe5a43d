"""One cell as a heatmap: how many correct responses by time and response time, and in which columns
slow requests coincided with something. Pure.

Counts come from the histograms of the intervals, so nothing is interpolated. Where there are more
intervals than columns may be drawn, neighbouring ones are added up.
"""

from __future__ import annotations

import base64
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wsgiload._loadgen import Histogram
from wsgiload.attribution import spans
from wsgiload.attribution.exposure import Flight, overlaps, tail_of
from wsgiload.attribution.steps import CFS_PERIOD_NS, steps_of
from wsgiload.documents.load_report import Interval, LoadReport
from wsgiload.documents.page_data import PageHeat, PageMark
from wsgiload.limits.model import Counters
from wsgiload.report.run_files import SampleRow
from wsgiload.sampling.sampler import Sample
from wsgiload.units import NS_PER_S

# Edges in each decade (Renard series, ISO 3): the finest of them that is not too fine.
_STEPS: tuple[tuple[float, ...], ...] = (
    (1, 1.25, 1.6, 2, 2.5, 3.15, 4, 5, 6.3, 8),
    (1, 1.6, 2.5, 4, 6.3),
    (1, 3.15),
    (1,),
)
MOST_COLUMNS = 120
# Below it the steps of a decade are no whole nanoseconds.
_LOWEST_EDGE_NS = 1_000
_FEWEST_CLASSES, _MOST_CLASSES = 8, 30
# A column is marked where at least this share of its slowest requests overlapped.
MARKED_SHARE = 0.5
# What the events of an attribution are called here.
_EVENTS = {
    "throttled": "CPU throttling",
    "cpu_wait": "CPU contention",
    "paused": "blocked server",
    "memory_pressure": "memory pressure",
}
SCALE = "Darker bins of a heatmap contain more responses (logarithmic color scale)."
MARKS = (
    "A triangle marks a column in which at least half of the slowest requests overlapped CPU "
    "throttling, CPU contention, a blocked server or memory pressure."
)


@dataclass(frozen=True, slots=True)
class Heat:
    """Correct responses by column of time, and class of response time, the lowest first."""

    ends_s: tuple[float, ...]
    edges_ns: tuple[int, ...]
    counts: tuple[tuple[int, ...], ...]
    # By column: how many of the slowest requests were scheduled in it. Empty: not recorded.
    slowest: tuple[int, ...]
    # By column: each event that at least half of these overlapped, and how many did.
    signals: tuple[tuple[tuple[str, int], ...], ...]

    def texts(self) -> list[str]:
        """By column what coincided, such as "throttling (12 of 14)"."""
        return [
            ", ".join(f"{name} ({count} of {slowest})" for name, count in signals)
            for slowest, signals in zip(self.slowest, self.signals, strict=True)
        ]

    def data(self) -> PageHeat:
        """Its numbers for the page."""
        return PageHeat(
            ends_s=self.ends_s,
            edges_ns=self.edges_ns,
            counts=self.counts,
            marks=tuple(
                PageMark(column=place, text=text) for place, text in enumerate(self.texts()) if text
            ),
        )


def make_heat(load: LoadReport, samples: Sequence[SampleRow], most_fields: int) -> Heat | None:
    """The heatmap of one cell with about so many fields at most; None without histograms."""
    intervals = sorted(load.intervals, key=lambda one: one.start_ns)
    buckets = [_buckets(one) for one in intervals]
    values = [value for of_interval in buckets for value, _ in of_interval]
    if not values:
        return None

    classes = max(_FEWEST_CLASSES, min(_MOST_CLASSES, most_fields // 24))
    edges = _edges(min(values), max(values), classes)
    columns = max(1, min(MOST_COLUMNS, most_fields // (len(edges) - 1)))
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


def _edges(low_ns: int, high_ns: int, most_classes: int) -> list[int]:
    """Round edges around all values, as fine as so many classes allow."""
    edges: list[int] = []
    for steps in _STEPS:
        edges = list(_between(low_ns, high_ns, steps))
        if len(edges) - 1 <= most_classes:
            break
    return edges


def _between(low_ns: int, high_ns: int, steps: Sequence[float]) -> Iterator[int]:
    """From the last edge that is not above the lowest value to the first above the highest."""
    power = 10 ** (len(str(max(_LOWEST_EDGE_NS, low_ns))) - 1)
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
    """By column how many of the slowest requests were scheduled in it, and what they overlapped."""
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
    """The events of an attribution, from the stored samples."""
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
        memory_bytes=row.memory_bytes,
        listen_queue=row.listen_queue,
        psi_cpu_some_ns=row.psi_cpu_some_ns,
        psi_cpu_full_ns=row.psi_cpu_full_ns,
        psi_memory_some_ns=row.psi_memory_some_ns,
        memory_high=row.memory_high,
    )
    return Sample(row.t_ns, 0, counters, row.width_ns or 0)


def fields_of_each(timelines: int, all_fields: int = 16_000) -> int:
    """How many fields each of so many heatmaps may have, so that a page has a bound."""
    return all_fields // max(1, timelines)
