"""The evidence about one cell that the fingerprints use. Pure."""

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
