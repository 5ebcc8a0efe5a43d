"""The shares of the slowest and of all requests that were in the system while the server was
delayed. Pure.

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
from dataclasses import dataclass
from typing import Literal

from wsgiload.attribution.spans import Span
from wsgiload.documents.attribution_result import ExposureResult, ShareInterval
from wsgiload.documents.load_report import LoadReport

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
