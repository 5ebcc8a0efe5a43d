"""Reading a server's resource counters at fixed moments, and what they add up to.

The sampler stores raw counters with the time they were really read; differences are made later,
by ``summarise``. It never raises into its caller: a source that fails becomes None.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from types import TracebackType
from typing import Protocol, Self

from wsgiload.limits.files import CounterFiles, Source, under
from wsgiload.limits.model import COUNTER_NAMES, Counters
from wsgiload.listen_queue import read_listen_queue

NS_PER_S = 1_000_000_000
DEFAULT_INTERVAL_NS = 100_000_000  # one CFS period; usage is accounted in ticks, faster tells little
STEAL_FIELD = 8
RESOURCE_COLUMNS = ("cell", "t_ns", *COUNTER_NAMES)


@dataclass(frozen=True, slots=True)
class Sample:
    """The counters at one moment of CLOCK_MONOTONIC, and how much later than planned that was."""

    t_ns: int
    late_ns: int
    counters: Counters

    def row(self, cell: str) -> list[str | int | None]:
        """The values of one line of resources.csv, in the order of ``RESOURCE_COLUMNS``."""
        return [cell, self.t_ns, *(getattr(self.counters, name) for name in COUNTER_NAMES)]


class Countable(Protocol):
    """Anything whose counters can be read; every limited group."""

    def read_counters(self) -> Counters: ...


class Sampler:
    """A thread that samples one group until it is stopped, with one last sample at the end.

    ``port`` adds the accept queue of the listening sockets there. Stop it before closing the group.
    """

    def __init__(
        self,
        group: Countable,
        *,
        port: int | None = None,
        interval_ns: int = DEFAULT_INTERVAL_NS,
        root: Path = Path("/"),
    ) -> None:
        self._group = group
        self._port = port
        self._interval_ns = interval_ns
        self._host = CounterFiles([Source(under(root, "/proc/stat"), _steal)])
        self._stopping = threading.Event()
        self._samples: list[Sample] = []
        self._thread = threading.Thread(target=self._run, name="wsgiload-sampler", daemon=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def samples(self) -> tuple[Sample, ...]:
        """What has been sampled so far."""
        return tuple(self._samples)

    def start(self) -> None:
        """Begin; the first sample is taken at once."""
        self._thread.start()

    def stop(self) -> tuple[Sample, ...]:
        """Take the last sample and end; may be called again."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._host.close()
        return self.samples

    def _run(self) -> None:
        due_ns = time.monotonic_ns()
        while not self._stopping.wait(max(0, due_ns - time.monotonic_ns()) / NS_PER_S):
            self._samples.append(self._take(due_ns))
            # moments that have already passed are left out, not caught up on
            missed = max(0, time.monotonic_ns() - due_ns) // self._interval_ns
            due_ns += (missed + 1) * self._interval_ns
        self._samples.append(self._take(time.monotonic_ns()))

    def _take(self, due_ns: int) -> Sample:
        t_ns = time.monotonic_ns()
        try:
            counters = self._group.read_counters()
        except Exception:  # whatever breaks in a source must not end the thread
            counters = Counters()
        counters = replace(counters, steal_ns=self._host.read().steal_ns)
        queue = read_listen_queue(self._port) if self._port is not None else None
        if queue is not None:
            counters = replace(counters, listen_queue=queue.queue, listen_drops=queue.drops)
        return Sample(t_ns, max(0, t_ns - due_ns), counters)


def _steal(text: str) -> dict[str, int]:
    """Time the hypervisor took from all cores together, from the first line of /proc/stat."""
    fields = text.partition("\n")[0].split()
    if len(fields) <= STEAL_FIELD:
        return {}
    return {"steal_ns": int(fields[STEAL_FIELD]) * NS_PER_S // os.sysconf("SC_CLK_TCK")}


@dataclass(frozen=True, slots=True)
class ResourceSummary:
    """What one cell used; None where it could not be measured."""

    cpu_cores_mean: float | None = None
    cpu_cores_peak: float | None = None
    cpu_ns_per_request: int | None = None
    memory_peak_bytes: int | None = None
    memory_mean_bytes: int | None = None
    throttled_period_ratio: float | None = None
    oom_kills: int | None = None
    psi_cpu_some_ratio: float | None = None
    listen_queue_peak: int | None = None
    listen_drops: int | None = None
    processes_peak: int | None = None

    def to_dict(self) -> dict[str, float | int | None]:
        """The ``resources`` object of summary.json."""
        return asdict(self)


def summarise(
    samples: Sequence[Sample],
    window: tuple[int, int],
    ok_count: int | None,
    *,
    memory_peak_bytes: int | None = None,
) -> ResourceSummary:
    """Add up the samples inside the window, by the times they were really taken.

    Kills for want of memory count over the group's whole life, because one before the window is as
    telling; so does ``memory_peak_bytes``, the kernel's high-water mark, where it is given.
    """
    inside = [sample for sample in samples if window[0] <= sample.t_ns <= window[1]]
    cores_mean = _per_ns(inside, "cpu_usage_ns")
    memory = _known(inside, "memory_bytes")
    return ResourceSummary(
        cpu_cores_mean=cores_mean,
        cpu_cores_peak=_peak_cores(inside),
        cpu_ns_per_request=_per_request(cores_mean, window, ok_count),
        memory_peak_bytes=max(memory, default=None) if memory_peak_bytes is None else memory_peak_bytes,
        memory_mean_bytes=round(fmean(memory)) if memory else None,
        throttled_period_ratio=_throttled(inside),
        oom_kills=max(_known(samples, "oom_kill"), default=None),
        psi_cpu_some_ratio=_per_ns(inside, "psi_cpu_some_ns"),
        listen_queue_peak=max(_known(inside, "listen_queue"), default=None),
        listen_drops=_increase(inside, "listen_drops"),
        processes_peak=max(_known(inside, "pids"), default=None),
    )


def _points(samples: Iterable[Sample], name: str) -> Iterator[tuple[int, int]]:
    for sample in samples:
        value = getattr(sample.counters, name)
        if value is not None:
            yield sample.t_ns, value


def _known(samples: Iterable[Sample], name: str) -> list[int]:
    return [value for _, value in _points(samples, name)]


def _increase(samples: Iterable[Sample], name: str) -> int | None:
    """The growth of a counter, or None where it is unknown or went back (someone began anew)."""
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


def _peak_cores(samples: Iterable[Sample]) -> float | None:
    """The busiest step; steps much shorter than the others are left out, their rates mean nothing."""
    steps = [(b_ns - a_ns, b - a) for (a_ns, a), (b_ns, b) in pairwise(_points(samples, "cpu_usage_ns"))]
    if not steps:
        return None
    usual_ns = median(length_ns for length_ns, _ in steps)
    return max((used / length_ns for length_ns, used in steps if length_ns >= usual_ns / 2 > 0), default=None)


def _per_request(cores: float | None, window: tuple[int, int], ok_count: int | None) -> int | None:
    if cores is None or not ok_count:
        return None
    return round(cores * (window[1] - window[0]) / ok_count)


def _throttled(samples: Sequence[Sample]) -> float | None:
    periods, throttled = _increase(samples, "nr_periods"), _increase(samples, "nr_throttled")
    return throttled / periods if periods and throttled is not None else None
