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
from typing import Protocol, Self, runtime_checkable

from wsgiload._loadgen import FileSampler
from wsgiload.limits.files import CounterFiles, Source, parse_texts, under
from wsgiload.limits.model import COUNTER_NAMES, Counters
from wsgiload.listen_queue import ListenQueue, cheap_queries, parse_answers, read_listen_queue
from wsgiload.processes import ClientUsage, ProcessUsage, ProcessWatch

NS_PER_S = 1_000_000_000
DEFAULT_INTERVAL_NS = 100_000_000  # one CFS period; usage is accounted in ticks, faster tells little
# What costs more than a read of the group's own files, or is accounted in ticks, is read no faster than this.
HOST_SPACING_NS = 100_000_000
PROCESS_SPACING_NS = 1_000_000_000
# Looking for new processes and threads costs most of all.
LOOK_ROUND_SPACING_NS = 5_000_000_000
# The generator is started after the first looks.
FIRST_LOOKS_ROUND = 3
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


# When it was due, begun and ended; contents by the place of their file; the kernel's answers about sockets.
Look = tuple[int, int, int, list[tuple[int, bytes]], list[bytes]]


class Countable(Protocol):
    """Anything whose counters can be read; every limited group."""

    def read_counters(self) -> Counters: ...


@runtime_checkable
class WithSources(Protocol):
    """A group whose counters come from files; every control group."""

    def sources(self) -> tuple[Source, ...]: ...


class Sampler:
    """Samples one group until it is stopped, with one last sample at the end.

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
        host = Source(under(root, "/proc/stat"), _host_times, HOST_SPACING_NS)
        self._reader: _FileReader | _AskingReader
        if isinstance(group, WithSources):
            self._reader = _FileReader((*group.sources(), host), port, interval_ns)
        else:
            self._reader = _AskingReader(group, host, port, interval_ns)
        self._server = ProcessWatch(pids, root) if pids is not None else None
        self._client_pids = [os.getpid()]
        self._client = ProcessWatch(lambda: self._client_pids, root)
        self._processes: list[ProcessUsage] = []
        self._client_usage: list[ClientUsage] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch_processes, name="wsgiload-processes", daemon=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def samples(self) -> tuple[Sample, ...]:
        """What was sampled of the group, as far as it is known."""
        waits = iter(sorted(_waits(self._processes).items()))
        due = next(waits, None)
        samples = []
        for sample in self._reader.samples:
            if due is not None and sample.t_ns >= due[0]:
                sample = replace(sample, counters=replace(sample.counters, run_queue_wait_ns=due[1]))
                due = next(waits, None)
            samples.append(sample)
        return tuple(samples)

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
        self._reader.start()

    def stop(self) -> tuple[Sample, ...]:
        """Take the last sample and end; may be called again."""
        if self._thread.ident is not None:
            self._stopping.set()
            self._thread.join()
            self._reader.stop()
            for watch in (self._server, self._client):
                if watch is not None:
                    watch.close()
        return self.samples

    def _watch_processes(self) -> None:
        look_round_ns = 0
        while True:
            now_ns = time.monotonic_ns()
            if now_ns >= look_round_ns or len(self._client_usage) < FIRST_LOOKS_ROUND:
                look_round_ns = now_ns + LOOK_ROUND_SPACING_NS
                for watch in (self._client, self._server):
                    if watch is not None:
                        watch.refresh()
            self._client_usage.append(self._client.total(now_ns))
            if self._server is not None:
                self._processes += self._server.usage(now_ns)
            if self._stopping.is_set():
                return
            self._stopping.wait(PROCESS_SPACING_NS / NS_PER_S)


class _FileReader:
    """Reads files in a thread without the interpreter; what they say is parsed when it has ended."""

    def __init__(self, sources: Sequence[Source], port: int | None, interval_ns: int) -> None:
        self._sources = sources
        self._port = port
        self._interval_ns = interval_ns
        self._files: FileSampler | None = None
        self.samples: tuple[Sample, ...] = ()

    def start(self) -> None:
        files = [(str(source.path), source.spacing_ns) for source in self._sources]
        queries = cheap_queries(self._port) if self._port is not None else []
        self._files = FileSampler(files, queries, self._interval_ns)

    def stop(self) -> None:
        if self._files is not None:
            self.samples = tuple(map(self._sample, self._files.stop()))
            self._files = None

    def _sample(self, look: Look) -> Sample:
        due_ns, begun_ns, ended_ns, texts, answers = look
        counters = parse_texts((self._sources[place].parse, text) for place, text in texts)
        queue = parse_answers(answers, self._port) if self._port is not None else None
        return _sample((due_ns, begun_ns, ended_ns), counters, queue)


class _AskingReader:
    """Asks a group that has no files of its own, in a thread of Python."""

    def __init__(self, group: Countable, host: Source, port: int | None, interval_ns: int) -> None:
        self._group = group
        self._host = CounterFiles([host])
        self._port = port
        self._interval_ns = interval_ns
        self._stopping = threading.Event()
        self._taken: list[Sample] = []
        self._thread = threading.Thread(target=self._run, name="wsgiload-sampler", daemon=True)

    @property
    def samples(self) -> tuple[Sample, ...]:
        return tuple(self._taken)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        self._host.close()

    def _run(self) -> None:
        due_ns = time.monotonic_ns()
        while not self._stopping.wait(max(0, due_ns - time.monotonic_ns()) / NS_PER_S):
            self._taken.append(self._take(due_ns))
            # moments that have already passed are left out, not caught up on
            missed = max(0, time.monotonic_ns() - due_ns) // self._interval_ns
            due_ns += (missed + 1) * self._interval_ns
        self._taken.append(self._take(time.monotonic_ns()))

    def _take(self, due_ns: int) -> Sample:
        begun_ns = time.monotonic_ns()
        try:
            counters = self._group.read_counters()
        except Exception:  # whatever breaks in a source must not end the thread
            counters = Counters()
        queue = read_listen_queue(self._port) if self._port is not None else None
        host = self._host.read()
        counters = replace(counters, steal_ns=host.steal_ns, host_busy_ns=host.host_busy_ns)
        return _sample((due_ns, begun_ns, time.monotonic_ns()), counters, queue)


def _sample(instants: tuple[int, int, int], counters: Counters, queue: ListenQueue | None) -> Sample:
    due_ns, begun_ns, ended_ns = instants
    if queue is not None:
        counters = replace(counters, listen_queue=queue.queue, listen_drops=queue.drops)
    return Sample((begun_ns + ended_ns) // 2, max(0, begun_ns - due_ns), counters, ended_ns - begun_ns)


def _waits(usage: Iterable[ProcessUsage]) -> dict[int, int]:
    """By moment, the run-queue wait of all processes together."""
    waits: dict[int, int] = {}
    for one in usage:
        waits[one.t_ns] = waits.get(one.t_ns, 0) + one.run_queue_wait_ns
    return waits


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
