"""Finds the seconds of a measurement that the host disturbed, and the quantiles of the other
seconds. Pure, from the samples of one cell.

A second is disturbed by CPU time of other processes (all except the server, its services and the
generator) or by steal time, never by slow responses.
"""

from __future__ import annotations

import base64
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

from wsgiload._loadgen import Histogram
from wsgiload.documents.load_report import Interval, LoadReport
from wsgiload.sampling.processes import ClientUsage
from wsgiload.sampling.sampler import Sample
from wsgiload.units import NS_PER_S

# Shares of the machine's CPU time in one second. The kernel counts in ticks of 10 ms; server,
# generator and host are not sampled at the same time; and some kernel work for new connections is
# not attributed to any process. On two cores, up to 11 % of single seconds seems to be used by
# other processes although there are none (decision 13).
MAX_FOREIGN_CPU, MAX_STEAL = 0.15, 0.05
# A counter is unknown at times that are further than this from its nearest sample.
MAX_DISTANCE_NS = 1_500_000_000
# With fewer responses beyond a quantile, chance affects it more than a disturbance does.
MIN_BEYOND = 10
_ROUNDING = 1e-9

# Time and value of a monotonic counter.
Points = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class HostCounters:
    """Busy and stolen CPU time of all cores, and the busy time of the measurement itself (server,
    services, generator); ``busy`` is None if the latter is unknown."""

    busy: Points | None
    steal: Points
    measurement: tuple[Points, ...]
    cpus: int

    def is_disturbed(self, from_ns: int, to_ns: int) -> bool | None:
        """Whether other processes or the hypervisor used too much CPU time between two timestamps;
        None if the counters are unknown there."""
        if to_ns <= from_ns:
            return None
        capacity_ns = self.cpus * (to_ns - from_ns)
        stolen = growth(self.steal, from_ns, to_ns)
        if self.busy is None:
            return None if stolen is None else stolen > MAX_STEAL * capacity_ns

        foreign = self._foreign(self.busy, from_ns, to_ns)
        if foreign is None:
            return None
        return foreign > MAX_FOREIGN_CPU * capacity_ns or (stolen or 0) > MAX_STEAL * capacity_ns

    def _foreign(self, busy: Points, from_ns: int, to_ns: int) -> float | None:
        growths = [growth(points, from_ns, to_ns) for points in (busy, *self.measurement)]
        known = [one for one in growths if one is not None]
        return known[0] - sum(known[1:]) if len(known) == len(growths) else None


def host_counters(
    samples: Sequence[Sample],
    client: Sequence[ClientUsage],
    cpus: int,
    services: Sequence[Sequence[Sample]] = (),
) -> HostCounters:
    """The counters from the samples of a cell."""
    usage = [points_of(one, "cpu_usage_ns") for one in (samples, *services)]
    generator = [(one.t_ns, one.cpu_ns) for one in client]
    return HostCounters(
        busy=points_of(samples, "host_busy_ns"),
        steal=points_of(samples, "steal_ns"),
        measurement=(*usage, generator),
        cpus=cpus,
    )


def hypervisor_counters(samples: Sequence[Sample], cpus: int) -> HostCounters:
    """Only the steal time, because the server's processes are unknown: its CPU time cannot be
    separated from that of other processes."""
    return HostCounters(busy=None, steal=points_of(samples, "steal_ns"), measurement=(), cpus=cpus)


def points_of(samples: Sequence[Sample], name: str) -> Points:
    """The known values of a counter."""
    values = [(one.t_ns, getattr(one.counters, name)) for one in samples]
    return [(t_ns, value) for t_ns, value in values if value is not None]


def growth(points: Points, from_ns: int, to_ns: int) -> float | None:
    """The growth of a counter, linearly interpolated between its samples."""
    ends = _at(points, from_ns), _at(points, to_ns)
    return None if ends[0] is None or ends[1] is None else max(0.0, ends[1] - ends[0])


def _at(points: Points, t_ns: int) -> float | None:
    after = bisect_left(points, t_ns, key=lambda point: point[0])
    nearest = points[max(0, after - 1) : after + 1]
    if not nearest or min(abs(t_ns - point[0]) for point in nearest) > MAX_DISTANCE_NS:
        return None
    (first_ns, first), (last_ns, last) = nearest[0], nearest[-1]
    if last_ns <= first_ns or not first_ns <= t_ns <= last_ns:
        return float(first if t_ns <= first_ns else last)
    return first + (last - first) * (t_ns - first_ns) / (last_ns - first_ns)


@dataclass(frozen=True, slots=True)
class HostSeconds:
    """How long the host was disturbed, and the response time quantiles of the other intervals; None
    for a quantile with too few responses beyond it."""

    disturbed_s: float
    undisturbed_ns: Mapping[float, int | None]


def host_seconds(load: LoadReport | None, host: HostCounters) -> HostSeconds | None:
    """The disturbances of a measurement, by report interval; None if the host was not sampled."""
    if load is None or not load.intervals:
        return None
    states = [
        host.is_disturbed(one.start_ns, one.start_ns + one.length_ns) for one in load.intervals
    ]
    if None in states:
        return None

    disturbed = [one for one, state in zip(load.intervals, states, strict=True) if state]
    total_s = sum(one.length_ns for one in disturbed) / NS_PER_S
    return HostSeconds(total_s, _undisturbed(load, disturbed))


def _undisturbed(load: LoadReport, disturbed: Sequence[Interval]) -> dict[float, int | None]:
    times = load.response_time_ns
    if times is None:
        return {}
    measured = {float(key): value for key, value in times.quantiles.items()}
    if not disturbed:
        return measured

    histogram = _merged(_undisturbed_intervals(load.intervals, disturbed))
    return {quantile: _resolved(histogram, quantile) for quantile in measured}


def _undisturbed_intervals(
    intervals: Sequence[Interval], disturbed: Sequence[Interval]
) -> list[Interval]:
    """The intervals without the disturbed ones and those that follow them, in which requests may
    still queue because of the disturbance."""
    starts = {one.start_ns for one in disturbed}
    after = {one.start_ns + one.length_ns for one in disturbed}
    return [one for one in intervals if one.start_ns not in starts | after]


def _merged(intervals: Sequence[Interval]) -> Histogram | None:
    texts = [one.hdr_v2 for one in intervals if one.hdr_v2 is not None]
    parts = [Histogram.from_hdr_v2(base64.b64decode(text)) for text in texts]
    return reduce(add, parts) if parts else None


def _resolved(histogram: Histogram | None, quantile: float) -> int | None:
    if histogram is None or histogram.count * (1 - quantile) < MIN_BEYOND - _ROUNDING:
        return None
    return histogram.quantile(quantile)
