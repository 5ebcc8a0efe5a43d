"""Reading a server's resource counters at fixed moments, and what they add up to.

The sampler stores raw counters with the time they were really read; differences are made later,
by ``summarise``. It never raises into its caller: a source that fails becomes None.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from types import TracebackType
from typing import Protocol, Self

from wsgiload.limits.files import CounterFiles, Snapshot, Source, parse_snapshot, under
from wsgiload.limits.model import COUNTER_NAMES, Counters
from wsgiload.listen_queue import ListenQueueReader
from wsgiload.processes import ClientUsage, ProcessUsage, ProcessWatch

NS_PER_S = 1_000_000_000
DEFAULT_INTERVAL_NS = 100_000_000  # one CFS period; usage is accounted in ticks, faster tells little
# What costs more than a read of the group's own files, or is accounted in ticks, is read no faster than this.
HOST_SPACING_NS = 100_000_000
PROCESS_SPACING_NS = 1_000_000_000
# Looking for new processes and threads costs most of all.
LOOK_ROUND_SPACING_NS = 5_000_000_000
LONGEST_NAP_NS = 100_000_000
RESOURCE_COLUMNS = ("cell", "t_ns", *COUNTER_NAMES, "late_ns", "width_ns")
# A sample whose reading took longer is no picture of one moment.
WIDE_NS = 10_000_000


@dataclass(frozen=True, slots=True)
class Sample:
    """The counters at one moment of CLOCK_MONOTONIC, the middle of their reading.

    ``late_ns`` is how much later than planned the reading began, ``width_ns`` how long it took.
    """

    t_ns: int
    late_ns: int
    counters: Counters
    width_ns: int = 0

    @property
    def is_wide(self) -> bool:
        """Whether the reading was held up, so that its counters belong to different moments."""
        return self.width_ns > WIDE_NS

    def row(self, cell: str) -> list[str | int | None]:
        """The values of one line of resources.csv, in the order of ``RESOURCE_COLUMNS``."""
        values = [getattr(self.counters, name) for name in COUNTER_NAMES]
        return [cell, self.t_ns, *values, self.late_ns, self.width_ns]


class Countable(Protocol):
    """Anything whose counters can be read; every limited group."""

    def read_counters(self) -> Counters: ...


@dataclass(frozen=True, slots=True)
class _Look:
    """What was read at one moment, not yet parsed: parsing waits until the load is over."""

    due_ns: int
    begun_ns: int
    ended_ns: int
    group: Snapshot | Counters
    queue: list[bytes]
    host: Snapshot
    run_queue_wait_ns: int | None


class Sampler:
    """A thread that samples one group until it is stopped, with one last sample at the end.

    ``port`` adds the accept queue of the listening sockets there, ``pids`` the processes one by one. Stop it before
    closing the group.
    """

    def __init__(
        self,
        group: Countable,
        *,
        port: int | None = None,
        pids: Callable[[], Iterable[int]] | None = None,
        interval_ns: int = DEFAULT_INTERVAL_NS,
        root: Path = Path("/"),
    ) -> None:
        self._group = group
        self._snapshot: Callable[[], Snapshot | None] = getattr(group, "snapshot", lambda: None)
        self._interval_ns = interval_ns
        self._host = CounterFiles([Source(under(root, "/proc/stat"), _host_times, HOST_SPACING_NS)])
        self._queue = ListenQueueReader(port) if port is not None else None
        self._server = ProcessWatch(pids, root) if pids is not None else None
        self._client_pids = [os.getpid()]
        self._client = ProcessWatch(lambda: self._client_pids, root)
        self._is_stopping = False
        self._looks: list[_Look] = []
        self._processes: list[ProcessUsage] = []
        self._client_usage: list[ClientUsage] = []
        self._processes_due_ns = self._look_round_ns = 0
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
        """What has been sampled of the group so far."""
        return tuple(map(self._sample, self._looks))

    @property
    def processes(self) -> tuple[ProcessUsage, ...]:
        """The server's processes one by one, once a second; none without ``pids``."""
        return tuple(self._processes)

    @property
    def client(self) -> tuple[ClientUsage, ...]:
        """What the generator and this process used, once a second."""
        return tuple(self._client_usage)

    def watch_client(self, pid: int) -> None:
        """The generator's process was started."""
        self._client_pids.append(pid)

    def start(self) -> None:
        """Begin; the first sample is taken at once."""
        self._thread.start()

    def stop(self) -> tuple[Sample, ...]:
        """Take the last sample and end; may be called again."""
        self._is_stopping = True
        if self._thread.ident is not None:
            self._thread.join()
        for source in (self._host, self._queue, self._server, self._client):
            if source is not None:
                source.close()
        return self.samples

    def _run(self) -> None:
        due_ns = time.monotonic_ns()
        while not self._is_stopping:
            self._take(due_ns)
            # moments that have already passed are left out, not caught up on
            missed = max(0, time.monotonic_ns() - due_ns) // self._interval_ns
            due_ns += (missed + 1) * self._interval_ns
            # Half as dear as the wait for an event, and the end of a load does not mind a tenth of a second.
            while not self._is_stopping and (left_ns := due_ns - time.monotonic_ns()) > 0:
                time.sleep(min(left_ns, LONGEST_NAP_NS) / NS_PER_S)
        self._processes_due_ns = self._look_round_ns = 0
        self._take(time.monotonic_ns())

    def _take(self, due_ns: int) -> None:
        begun_ns = time.monotonic_ns()
        try:
            group = self._snapshot() or self._group.read_counters()
        except Exception:  # whatever breaks in a source must not end the thread
            group = Counters()
        queue = self._queue.snapshot() if self._queue is not None else []
        ended_ns = time.monotonic_ns()
        host, waited_ns = self._host.snapshot(), self._take_processes(begun_ns)
        self._looks.append(_Look(due_ns, begun_ns, ended_ns, group, queue, host, waited_ns))

    def _take_processes(self, now_ns: int) -> int | None:
        """The server's processes and ours where they are due; the wait of the server's threads."""
        if now_ns < self._processes_due_ns:
            return None
        self._processes_due_ns = now_ns + PROCESS_SPACING_NS
        watches = [watch for watch in (self._client, self._server) if watch is not None]
        if now_ns >= self._look_round_ns or len(self._client_usage) < 3:  # the generator starts after us
            self._look_round_ns = now_ns + LOOK_ROUND_SPACING_NS
            for watch in watches:
                watch.refresh()
        self._client_usage.append(self._client.total(now_ns))
        if self._server is None:
            return None
        usage = self._server.usage(now_ns)
        self._processes += usage
        return sum(process.run_queue_wait_ns for process in usage) if usage else None

    def _sample(self, look: _Look) -> Sample:
        counters = look.group if isinstance(look.group, Counters) else parse_snapshot(look.group)
        host = parse_snapshot(look.host)
        found = self._queue.parse(look.queue) if self._queue is not None else None
        counters = replace(
            counters,
            listen_queue=found.queue if found is not None else None,
            listen_drops=found.drops if found is not None else None,
            steal_ns=host.steal_ns,
            host_busy_ns=host.host_busy_ns,
            run_queue_wait_ns=look.run_queue_wait_ns,
        )
        t_ns = (look.begun_ns + look.ended_ns) // 2
        return Sample(t_ns, max(0, look.begun_ns - look.due_ns), counters, look.ended_ns - look.begun_ns)


def _host_times(text: str) -> dict[str, int]:
    """Time that all cores together were busy, and that the hypervisor took, from the first line of /proc/stat."""
    fields = [int(field) for field in text.partition("\n")[0].split()[1:9]]
    if len(fields) < 8:
        return {}
    user, nice, system, _idle, _wait, interrupt, soft_interrupt, steal = fields
    tick_ns = NS_PER_S // os.sysconf("SC_CLK_TCK")
    busy = user + nice + system + interrupt + soft_interrupt
    return {"steal_ns": steal * tick_ns, "host_busy_ns": busy * tick_ns}


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
    pss_before_bytes: int | None = None
    pss_after_bytes: int | None = None

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
