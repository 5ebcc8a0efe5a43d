"""The evidence about one cell that the fingerprints use, and its exposure: the shares of the
slowest and of all requests that were in the system while the server was delayed. Pure.

Exposure is a coincidence, not a cause; only ``intervention`` can show a cause. Bounds are 95 %
percentile bounds of a bootstrap over blocks of time, because consecutive requests are correlated:
Kunsch, The jackknife and the bootstrap for general stationary observations, Annals of Statistics 17
(1989).
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from wsgiload.attribution.spans import Span, Step, joined
from wsgiload.documents.attribution_result import ExposureResult, ShareInterval
from wsgiload.documents.codec import histogram_of
from wsgiload.documents.load_report import LoadReport
from wsgiload.sampling.processes import ProcessUsage
from wsgiload.units import NS_PER_S

# Linux retransmits an unanswered SYN after 1 s and doubles the delay each time (RFC 6298), that is,
# about 1, 3 and 7 s after the first.
RETRANSMISSIONS_NS = (
    (900_000_000, 1_400_000_000),
    (2_900_000_000, 3_400_000_000),
    (6_900_000_000, 7_400_000_000),
)
# Workers that were observed for less time are not compared.
MIN_LENGTH_NS = NS_PER_S // 2
# Ten times the median corresponds to a queue of ten requests, which hardly occurs by chance unless
# the server is nearly saturated. A step between samples is about 100 ms long.
STALL_FACTOR, MIN_STALL_NS = 10, 100_000_000


@dataclass(frozen=True, slots=True)
class Balance:
    """The distribution of CPU use over the workers, which are the processes without child
    processes."""

    workers: int
    busiest_cores: float
    # 0: all workers use the same CPU time; 1: one worker uses all of it.
    imbalance: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """Counters over the measurement; None or empty if they were not sampled."""

    steps: Sequence[Step] = ()
    oom_kills: int | None = None
    listen_drops: int | None = None
    backlog: int | None = None
    balance: Balance | None = None
    # Connections that took about as long as one, two and three SYN retransmissions.
    late_connects: tuple[int, ...] = ()
    # Spans in which a request waited far longer than usual.
    stalls: tuple[Span, ...] = ()
    shared_cores: bool = False
    period_ns: int = field(default=100_000_000)

    def growth(self, name: str) -> int | None:
        """The growth of a counter over all steps."""
        values = [value for step in self.steps if (value := getattr(step, name)) is not None]
        return sum(values) if values else None

    @property
    def length_ns(self) -> int:
        """The total length of all steps."""
        return sum(step.length_ns for step in self.steps)


def late_connects(load: LoadReport | None) -> tuple[int, ...]:
    """How many connections took about 1, 3 and 7 s to open."""
    histogram = histogram_of(load.connect_time_ns) if load is not None else None
    if histogram is None:
        return ()
    buckets = histogram.buckets()
    return tuple(
        sum(count for value, count in buckets if low <= value <= high)
        for low, high in RETRANSMISSIONS_NS
    )


def stalls_of(load: LoadReport | None) -> tuple[Span, ...]:
    """The spans in which very slow requests were in the system: those that took at least ten times
    the median and at least as long as a step between samples."""
    median_ns = (
        None
        if load is None or load.response_time_ns is None
        else (load.response_time_ns.quantiles.get("0.5"))
    )
    if load is None or load.flights is None or median_ns is None:
        return ()
    min_ns = max(MIN_STALL_NS, STALL_FACTOR * median_ns)
    slow = [flight for flight in load.flights.slowest if flight[1] - flight[0] >= min_ns]
    return tuple(joined(slow))


def balance_of(usage: Sequence[ProcessUsage], window: tuple[int, int]) -> Balance | None:
    """The distribution of CPU use over the workers that were observed longest; None with fewer than
    two of them, or if that was less than half a second."""
    inside = [one for one in usage if window[0] <= one.t_ns <= window[1]]
    parents = {one.parent_pid for one in inside}
    by_pid: dict[int, list[ProcessUsage]] = defaultdict(list)
    for one in inside:
        if one.pid not in parents:
            by_pid[one.pid].append(one)

    longest_ns = max((rows[-1].t_ns - rows[0].t_ns for rows in by_pid.values()), default=0)
    workers = [rows for rows in by_pid.values() if rows[-1].t_ns - rows[0].t_ns == longest_ns]
    if len(workers) < 2 or longest_ns < MIN_LENGTH_NS:
        return None
    cores = [(rows[-1].cpu_ns - rows[0].cpu_ns) / longest_ns for rows in workers]
    mean = sum(cores) / len(cores)
    imbalance = (max(cores) / mean - 1) / (len(cores) - 1) if mean > 0 else 0.0
    return Balance(len(cores), max(cores), imbalance)


Flight = tuple[int, int]
Event = Literal["throttled", "cpu_wait", "paused", "memory_pressure"]

SLOWEST_SHARE = 0.01
MIN_SLOWEST = 10
BLOCK_NS = 1_000_000_000
MAX_BLOCKS = 60
MIN_BLOCKS = 5
RESAMPLES = 1_000


@dataclass(frozen=True, slots=True)
class Tail:
    """The slowest requests of a load and a random sample of all: when each was in the system."""

    slowest: tuple[Flight, ...]
    sample: tuple[Flight, ...]
    slowest_share: float


def tail_of(load: LoadReport) -> Tail | None:
    """The slowest 1 % of the requests, or the slowest ten if that is more, as far as the report
    lists them."""
    flights, scheduled = load.flights, load.outcomes.scheduled
    if flights is None or not flights.sample:
        return None
    slowest = flights.slowest[: slowest_count(scheduled)]
    return Tail(slowest, flights.sample, len(slowest) / scheduled)


def slowest_count(scheduled: int) -> int:
    """How many of this many requests are the slowest ones."""
    return max(math.ceil(scheduled * SLOWEST_SHARE), MIN_SLOWEST)


def exposure(event: Event, tail: Tail, spans: Sequence[Span], seed: int = 1) -> ExposureResult:
    """The shares of requests that overlapped with the spans, with bounds."""
    blocks = _blocks(tail, spans)
    total = _sum(blocks)
    resampled = _resampled(blocks, seed) if len(blocks) >= MIN_BLOCKS else []

    slowest = [_share(block[0], block[1]) for block in resampled if block[1]]
    every = [_share(block[2], block[3]) for block in resampled if block[3]]
    return ExposureResult(
        event=event,
        slowest=_interval(_share(total[0], total[1]), slowest),
        all=_interval(_share(total[2], total[3]), every),
        risk_ratio=_risk(total, resampled, tail.slowest_share),
    )


def _risk(
    total: _Counts, resampled: Sequence[_Counts], slowest_share: float
) -> ShareInterval | None:
    """How much more often requests were slow if they overlapped; None if all or none did."""
    ratio = _risk_ratio(total, slowest_share)
    if ratio is None:
        return None
    ratios = [
        value for block in resampled if (value := _risk_ratio(block, slowest_share)) is not None
    ]
    return _interval(ratio, ratios if len(ratios) == len(resampled) else [])


def _interval(value: float, resampled: Sequence[float]) -> ShareInterval:
    low, high = _bounds(resampled)
    return ShareInterval(value=value, low=low, high=high)


# Overlapping slowest, all slowest, overlapping sampled, all sampled requests.
_Counts = tuple[int, int, int, int]


def _blocks(tail: Tail, spans: Sequence[Span]) -> list[_Counts]:
    """Counts by block of scheduled send times."""
    begin_ns, end_ns = tail.sample[0][0], tail.sample[-1][0]
    length_ns = max(BLOCK_NS, math.ceil((end_ns - begin_ns + 1) / MAX_BLOCKS))
    counts: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for place, flights in ((0, tail.slowest), (2, tail.sample)):
        for flight in flights:
            block = counts[(flight[0] - begin_ns) // length_ns]
            block[place] += overlaps(flight, spans)
            block[place + 1] += 1
    return [(one, two, three, four) for one, two, three, four in counts.values()]


def overlaps(flight: Flight, spans: Sequence[Span]) -> bool:
    """Whether a request was in the system during one of the spans, which are sorted and
    disjoint."""
    after = bisect_left(spans, flight[0], key=lambda span: span[1])
    return after < len(spans) and spans[after][0] <= flight[1]


def _sum(blocks: Iterable[_Counts]) -> _Counts:
    one, two, three, four = (sum(column) for column in zip(*blocks, strict=True))
    return one, two, three, four


def _resampled(blocks: Sequence[_Counts], seed: int) -> list[_Counts]:
    chance = random.Random(seed)
    return [_sum(chance.choices(blocks, k=len(blocks))) for _ in range(RESAMPLES)]


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _risk_ratio(counts: _Counts, slow_share: float) -> float | None:
    """P(slow | overlap) / P(slow | no overlap), from the two shares that overlapped by Bayes'
    theorem."""
    slow, every = _share(counts[0], counts[1]), _share(counts[2], counts[3])
    if not 0 < every < 1 or slow_share >= 1 or slow >= 1:
        return None
    return (slow / every) / ((1 - slow) / (1 - every))


def _bounds(values: Sequence[float]) -> tuple[float | None, float | None]:
    if not values:
        return None, None
    ordered = sorted(values)
    place = round(0.025 * (len(ordered) - 1))
    return ordered[place], ordered[-1 - place]
