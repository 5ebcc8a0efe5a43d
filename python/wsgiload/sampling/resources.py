"""Aggregates the samples of a server, and detects memory that kept growing. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median

from wsgiload.documents.load_report import LoadReport
from wsgiload.documents.resources import ResourceUse
from wsgiload.sampling.sampler import Sample
from wsgiload.units import NS_PER_S

NOTHING_SAMPLED = ResourceUse(
    cpu_cores_mean=None,
    cpu_cores_peak=None,
    cpu_ns_per_request=None,
    memory_peak_bytes=None,
    memory_mean_bytes=None,
    page_cache_peak_bytes=None,
    throttled_period_ratio=None,
    oom_kills=None,
    psi_cpu_some_ratio=None,
    listen_queue_peak=None,
    listen_drops=None,
    processes_peak=None,
)


def summarise(
    samples: Sequence[Sample],
    window: tuple[int, int],
    ok_count: int | None,
    *,
    starting_peak_bytes: int | None = None,
) -> ResourceUse:
    """Aggregate the samples inside the window, by their actual times.

    OOM kills and memory peaks cover all samples, because a limit must also hold before and after
    the window. ``starting_peak_bytes`` is the memory peak before the first sample.
    """
    inside = [sample for sample in samples if window[0] <= sample.t_ns <= window[1]]
    cores_mean = _per_ns(inside, "cpu_usage_ns")
    held = [size for sample in inside if (size := sample.counters.unreclaimable_bytes) is not None]
    return ResourceUse(
        cpu_cores_mean=cores_mean,
        cpu_cores_peak=_peak_cores(inside),
        cpu_ns_per_request=_per_request(cores_mean, window, ok_count)
        if _spans(inside, window)
        else None,
        memory_peak_bytes=_largest(starting_peak_bytes, memory_peak_bytes(samples)),
        memory_mean_bytes=round(fmean(held)) if held else None,
        page_cache_peak_bytes=_largest(*(sample.counters.page_cache_bytes for sample in samples)),
        throttled_period_ratio=_throttled(inside),
        oom_kills=max(_known(samples, "oom_kill"), default=None),
        psi_cpu_some_ratio=_share(inside, "psi_cpu_some_ns"),
        listen_queue_peak=max(_known(inside, "listen_queue"), default=None),
        listen_drops=_increase(inside, "listen_drops"),
        processes_peak=max(_known(inside, "pids"), default=None),
    )


def memory_peak_bytes(samples: Iterable[Sample]) -> int | None:
    """The most memory that the server could not give back; None if unknown."""
    return _largest(*(sample.counters.unreclaimable_bytes for sample in samples))


def _largest(*values: int | None) -> int | None:
    return max((value for value in values if value is not None), default=None)


def _points(samples: Iterable[Sample], name: str) -> Iterator[tuple[int, int]]:
    for sample in samples:
        value = getattr(sample.counters, name)
        if value is not None:
            yield sample.t_ns, value


def _known(samples: Iterable[Sample], name: str) -> list[int]:
    return [value for _, value in _points(samples, name)]


def _increase(samples: Iterable[Sample], name: str) -> int | None:
    """The increase of a counter; None if it is unknown or decreased (was reset)."""
    values = _known(samples, name)
    if len(values) < 2 or values[-1] < values[0]:
        return None
    return values[-1] - values[0]


def _per_ns(samples: Iterable[Sample], name: str) -> float | None:
    points = list(_points(samples, name))
    if len(points) < 2:
        return None
    (first_ns, first), (last_ns, last) = points[0], points[-1]
    return (last - first) / (last_ns - first_ns) if last_ns > first_ns and last >= first else None


def _share(samples: Iterable[Sample], name: str) -> float | None:
    """The increase of a time counter as a share of the elapsed time, at most 1: the kernel updates
    pressure with a delay, so the increase may slightly exceed the elapsed time."""
    share = _per_ns(samples, name)
    return None if share is None else min(share, 1.0)


def _peak_cores(samples: Iterable[Sample]) -> float | None:
    """The highest CPU use between two samples, without intervals shorter than half the median,
    whose rates are meaningless."""
    steps = [
        (b_ns - a_ns, b - a) for (a_ns, a), (b_ns, b) in pairwise(_points(samples, "cpu_usage_ns"))
    ]
    if not steps:
        return None
    median_ns = median(length_ns for length_ns, _ in steps)
    return max(
        (used / length_ns for length_ns, used in steps if length_ns >= median_ns / 2 > 0),
        default=None,
    )


def _per_request(cores: float | None, window: tuple[int, int], ok_count: int | None) -> int | None:
    if cores is None or not ok_count:
        return None
    return round(cores * (window[1] - window[0]) / ok_count)


def _spans(samples: Iterable[Sample], window: tuple[int, int]) -> bool:
    """Whether the samples of CPU time cover the window, except for at most two intervals at each
    end. If the server died early, they do not."""
    times_ns = [t_ns for t_ns, _ in _points(samples, "cpu_usage_ns")]
    if len(times_ns) < 2:
        return False
    median_ns = median(later - earlier for earlier, later in pairwise(times_ns))
    return max(times_ns[0] - window[0], window[1] - times_ns[-1]) <= 2 * median_ns


def _throttled(samples: Sequence[Sample]) -> float | None:
    periods, throttled = _increase(samples, "nr_periods"), _increase(samples, "nr_throttled")
    return throttled / periods if periods and throttled is not None else None


def measured_window(load: LoadReport) -> tuple[tuple[int, int], int]:
    """Start and end of the measurement on the samples' clock, and its number of correct
    responses."""
    start_ns = load.clock.monotonic_ns + load.plan.phases.warmup_ns
    goodput_per_s = load.rate.goodput_per_s or 0
    ok_count = round(goodput_per_s * load.measured_ns / NS_PER_S)
    return (start_ns, start_ns + load.measured_ns), ok_count


# Smaller growth is normal: allocator arenas, a buffer per connection.
MIN_GROWTH_BYTES, MIN_GROWTH = 10 << 20, 0.2
# Caches and pools fill up and level off. With steady growth, the last of the three steps between
# quarters has a third of the total growth; if each step is half the previous one, it has a seventh,
# which counts as levelling off.
QUARTERS = 4
MIN_LAST_QUARTER = 0.15
MIN_SAMPLES, MIN_LENGTH_NS = 20, 5 * NS_PER_S


@dataclass(frozen=True, slots=True)
class MemoryGrowth:
    """How much the memory of the server's processes grew while requests were served."""

    grown_bytes: int
    """Proportional set size (PSS) after the load minus before it."""
    length_ns: int
    memory_bytes: int
    """The memory at the end that the server cannot give back."""

    @property
    def bytes_per_s(self) -> float:
        """Mean growth in bytes per second."""
        return self.grown_bytes / (self.length_ns / NS_PER_S)


def memory_growth(
    samples: Sequence[Sample], before_bytes: int | None, after_bytes: int | None
) -> MemoryGrowth | None:
    """Growth that did not level off; None if there is none, or too little data.

    ``before_bytes`` and ``after_bytes``, the PSS of the processes, give the amount; the samples of
    the group show whether the growth continued.
    """
    points = [
        (sample.t_ns, held_bytes)
        for sample in samples
        if (held_bytes := sample.counters.unreclaimable_bytes) is not None
    ]
    if before_bytes is None or after_bytes is None or len(points) < MIN_SAMPLES:
        return None

    length_ns = points[-1][0] - points[0][0]
    grown_bytes = after_bytes - before_bytes
    is_large = grown_bytes >= max(MIN_GROWTH_BYTES, MIN_GROWTH * before_bytes)
    if (
        length_ns < MIN_LENGTH_NS
        or not is_large
        or not _keeps_growing([value for _, value in points])
    ):
        return None
    return MemoryGrowth(grown_bytes, length_ns, points[-1][1])


def _keeps_growing(values: Sequence[int]) -> bool:
    """Whether the mean increases from quarter to quarter, still substantially in the last step."""
    size = len(values) / QUARTERS
    means = [fmean(values[round(n * size) : round((n + 1) * size)]) for n in range(QUARTERS)]
    steps = [later - earlier for earlier, later in pairwise(means)]
    return min(steps) > 0 and steps[-1] >= MIN_LAST_QUARTER * sum(steps)
