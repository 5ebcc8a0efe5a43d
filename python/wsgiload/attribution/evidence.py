"""What is known of one cell, as the fingerprints need it. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from wsgiload.attribution.spans import Span, joined
from wsgiload.attribution.steps import Step
from wsgiload.documents.histograms import histogram_of
from wsgiload.documents.load_report import LoadReport
from wsgiload.sampling.processes import ProcessUsage
from wsgiload.units import NS_PER_S

# Linux sends a SYN that nobody answered again after 1 s, and waits twice as long each time (RFC
# 6298).
RETRANSMISSIONS_NS = (
    (900_000_000, 1_400_000_000),
    (2_900_000_000, 3_400_000_000),
    (6_900_000_000, 7_400_000_000),
)
# A process that has used less since it was first seen is no worker that could be compared.
LEAST_LENGTH_NS = NS_PER_S // 2
# Ten times the median takes a queue of ten: where the server is not nearly saturated, chance alone
# hardly makes one. A step between samples is about 100 ms long.
STALL_FACTOR, SHORTEST_STALL_NS = 10, 100_000_000


@dataclass(frozen=True, slots=True)
class Balance:
    """How the CPU use is spread over the workers: processes that started no others."""

    workers: int
    busiest_cores: float
    # 0: all the same, 1: one does everything.
    imbalance: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """Counters over the measurement; None or empty where nobody looked."""

    steps: Sequence[Step] = ()
    oom_kills: int | None = None
    listen_drops: int | None = None
    backlog: int | None = None
    balance: Balance | None = None
    # Connections that took about as long as one, two or three SYN retransmissions.
    late_connects: tuple[int, ...] = ()
    # Spans in which a request waited far longer than usual.
    stalls: tuple[Span, ...] = ()
    shared_cores: bool = False
    period_ns: int = field(default=100_000_000)

    def grown(self, name: str) -> int | None:
        """The growth of a counter over all steps."""
        values = [value for step in self.steps if (value := getattr(step, name)) is not None]
        return sum(values) if values else None

    @property
    def length_ns(self) -> int:
        """All steps together."""
        return sum(step.length_ns for step in self.steps)


def late_connects(load: LoadReport | None) -> tuple[int, ...]:
    """How many connections took about 1, 3 and 7 s to make."""
    histogram = histogram_of(load.connect_time_ns) if load is not None else None
    if histogram is None:
        return ()
    buckets = histogram.buckets()
    return tuple(
        sum(count for value, count in buckets if low <= value <= high)
        for low, high in RETRANSMISSIONS_NS
    )


def stalls_of(load: LoadReport | None) -> tuple[Span, ...]:
    """The spans in which the slowest requests were in the system: those that took ten times the
    median, and long enough for a step between two samples to lie inside."""
    median_ns = (
        None
        if load is None or load.response_time_ns is None
        else (load.response_time_ns.quantiles.get("0.5"))
    )
    if load is None or load.flights is None or median_ns is None:
        return ()
    least_ns = max(SHORTEST_STALL_NS, STALL_FACTOR * median_ns)
    slow = [flight for flight in load.flights.slowest if flight[1] - flight[0] >= least_ns]
    return tuple(joined(slow))


def balance_of(usage: Sequence[ProcessUsage], window: tuple[int, int]) -> Balance | None:
    """The spread of CPU use over the workers that lived all the while; None with fewer than two of
    them."""
    inside = [one for one in usage if window[0] <= one.t_ns <= window[1]]
    parents = {one.parent_pid for one in inside}
    of_process: dict[int, list[ProcessUsage]] = defaultdict(list)
    for one in inside:
        if one.pid not in parents:
            of_process[one.pid].append(one)
    longest_ns = max((rows[-1].t_ns - rows[0].t_ns for rows in of_process.values()), default=0)
    whole = [rows for rows in of_process.values() if rows[-1].t_ns - rows[0].t_ns == longest_ns]
    if len(whole) < 2 or longest_ns < LEAST_LENGTH_NS:
        return None
    cores = [(rows[-1].cpu_ns - rows[0].cpu_ns) / longest_ns for rows in whole]
    mean = sum(cores) / len(cores)
    imbalance = (max(cores) / mean - 1) / (len(cores) - 1) if mean > 0 else 0.0
    return Balance(len(cores), max(cores), imbalance)
