"""Samples a server's resource counters at fixed intervals.

The sampler stores raw counters with their actual times; ``resources`` and ``attribution`` compute
differences later. It never raises into its caller: a failing source gives None.
"""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat
from pathlib import Path
from typing import Protocol, Self, runtime_checkable

from wsgiload._loadgen import FileSampler
from wsgiload.limits.files import EVERY_SECOND_NS, CounterFiles, CounterSource, parse_texts, under
from wsgiload.limits.model import COUNTER_NAMES, Counters
from wsgiload.sampling.listen_queue import (
    ListenQueue,
    parse_replies,
    polling_queries,
    read_listen_queue,
)
from wsgiload.sampling.processes import ClientUsage, ProcessUsage, ProcessWatch

NS_PER_S = 1_000_000_000
DEFAULT_INTERVAL_NS = (
    100_000_000  # one CFS period; CPU time is accounted in ticks, so faster sampling adds little
)
# /proc/stat is more expensive than the group's files and counts in ticks, so it is read less often,
# but at least twice in the shortest measurement.
HOST_SPACING_NS = 500_000_000
PROCESS_SPACING_NS = EVERY_SECOND_NS
# Searching for new processes and threads is the most expensive step. The generator starts after the
# first search.
FIRST_FINDS_AFTER_S = (0.5, 1.0)
FIND_SPACING_S = 5.0
RESOURCE_COLUMNS = ("cell", "t_ns", *COUNTER_NAMES, "late_ns", "width_ns")
# The columns for a supporting service.
SERVICE_COLUMNS = ("cell", "service", "t_ns", "cpu_usage_ns", "memory_bytes")
# The counters of a sample that took longer belong to different times.
WIDE_NS = 10_000_000


@dataclass(frozen=True, slots=True)
class Sample:
    """The counters at one time of CLOCK_MONOTONIC, the middle of the reading.

    ``late_ns`` is the delay of the reading's start, ``width_ns`` its duration.
    """

    t_ns: int
    late_ns: int
    counters: Counters
    width_ns: int = 0

    @property
    def is_wide(self) -> bool:
        """Whether the reading took too long to describe a single time."""
        return self.width_ns > WIDE_NS

    def row(self, cell: str) -> list[str | int | None]:
        """The values of one line of resources.csv, in the order of ``RESOURCE_COLUMNS``."""
        values = [getattr(self.counters, name) for name in COUNTER_NAMES]
        return [cell, self.t_ns, *values, self.late_ns, self.width_ns]

    def service_row(self, cell: str, service: str) -> list[str | int | None]:
        """The values of one line of services.csv, in the order of ``SERVICE_COLUMNS``."""
        counters = self.counters
        return [cell, service, self.t_ns, counters.cpu_usage_ns, counters.memory_bytes]


# Scheduled time, start and end; contents, each with the position of its file; the kernel's replies
# about sockets.
Reading = tuple[int, int, int, list[tuple[int, bytes]], list[bytes]]


class Countable(Protocol):
    """Has readable counters, like every limited group."""

    def read_counters(self) -> Counters: ...


@runtime_checkable
class WithSources(Protocol):
    """Has counters that come from files, like every control group."""

    def sources(self) -> tuple[CounterSource, ...]: ...


class Sampler:
    """Samples one group until it is stopped, with a final sample at the end.

    ``port`` adds the accept queue of the sockets that listen there; ``pids`` adds the individual
    processes. Stop it before closing the group.
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
        host = CounterSource(under(root, "/proc/stat"), _host_times, HOST_SPACING_NS)
        self._polling: _PollingReader | None = None
        if isinstance(group, WithSources):
            self._files = _FileReader((*group.sources(), host), port, interval_ns)
        else:
            self._polling = _PollingReader(group, host, port, interval_ns)
            self._files = _FileReader((), None, PROCESS_SPACING_NS)
        self._server = ProcessWatch(pids, root) if pids is not None else None
        self._client_pids = [os.getpid()]
        self._client = ProcessWatch(lambda: self._client_pids, root)
        # For each file added to the reader: its owner, and its number there.
        self._owners: list[tuple[ProcessWatch, int]] = []
        self._samples: list[Sample] = []
        self._processes: list[ProcessUsage] = []
        self._client_usage: list[ClientUsage] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(
            target=self._find_more, name="wsgiload-processes", daemon=True
        )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    @property
    def samples(self) -> tuple[Sample, ...]:
        """The samples of the group so far."""
        waits = iter(sorted(_waits(self._processes).items()))
        due = next(waits, None)
        samples = []
        for sample in self._polling.samples if self._polling is not None else self._samples:
            if due is not None and sample.t_ns >= due[0]:
                sample = replace(
                    sample, counters=replace(sample.counters, run_queue_wait_ns=due[1])
                )
                due = next(waits, None)
            samples.append(sample)
        return tuple(samples)

    @property
    def processes(self) -> tuple[ProcessUsage, ...]:
        """The server's individual processes, once a second; empty before the end, and without
        ``pids``."""
        return tuple(self._processes)

    @property
    def client(self) -> tuple[ClientUsage, ...]:
        """The resource use of the generator and this process, once a second; empty before the
        end."""
        return tuple(self._client_usage)

    def latest(self) -> Sample | None:
        """The newest sample; None before the first and after the end."""
        if self._polling is not None:
            return self._polling.latest()
        return self._files.latest()

    def watch_client(self, pid: int) -> None:
        """Also sample the generator's process."""
        self._client_pids.append(pid)

    def start(self) -> None:
        """Start sampling, with a first sample immediately."""
        self._files.start(self._find())
        if self._polling is not None:
            self._polling.start()
        self._thread.start()

    def stop(self) -> tuple[Sample, ...]:
        """Take a last sample and stop; may be called repeatedly."""
        if self._thread.ident is not None:
            self._stopping.set()
            self._thread.join()
            if self._polling is not None:
                self._polling.stop()
            for reading in self._files.stop():
                self._take(reading)
        return self.samples

    def _find_more(self) -> None:
        for pause_s in chain(FIRST_FINDS_AFTER_S, repeat(FIND_SPACING_S)):
            if self._stopping.wait(pause_s):
                return
            self._files.add(self._find())

    def _find(self) -> list[Path]:
        """The files of new processes and threads."""
        files = []
        for watch in [self._client] if self._server is None else [self._client, self._server]:
            for number, path in watch.find():
                self._owners.append((watch, number))
                files.append(path)
        return files

    def _take(self, reading: _Parsed) -> None:
        """Store the readings of one sample; processes are read less often than the group."""
        if reading.sample is not None:
            self._samples.append(reading.sample)
        contents: dict[ProcessWatch, dict[int, bytes]] = defaultdict(dict)
        for position, content in reading.others:
            watch, number = self._owners[position]
            contents[watch][number] = content
        if self._client in contents:
            self._client_usage.append(self._client.total(reading.t_ns, contents[self._client]))
        if self._server is not None and self._server in contents:
            self._processes += self._server.usage(reading.t_ns, contents[self._server])


@dataclass(frozen=True, slots=True)
class _Parsed:
    """A reading: the sample, if there were sources for one, and the contents of the other files by
    position."""

    t_ns: int
    sample: Sample | None
    others: list[tuple[int, bytes]]


class _FileReader:
    """Reads files in a native thread, without the GIL; the contents are parsed after the end."""

    def __init__(
        self, sources: Sequence[CounterSource], port: int | None, interval_ns: int
    ) -> None:
        self._sources = sources
        self._port = port
        self._interval_ns = interval_ns
        self._files: FileSampler | None = None

    def start(self, others: Iterable[Path]) -> None:
        """Start reading the sources and these files."""
        files = [(str(source.path), source.spacing_ns) for source in self._sources]
        queries = polling_queries(self._port) if self._port is not None else []
        self._files = FileSampler(files + _spaced(others), queries, self._interval_ns)

    def add(self, others: Iterable[Path]) -> None:
        """Also read these files; their positions follow the earlier ones."""
        if self._files is not None:
            self._files.add(_spaced(others))

    def latest(self) -> Sample | None:
        """The newest sample of the group; None if there is none."""
        files = self._files
        reading = files.latest() if files is not None else None
        return self._parse(reading).sample if reading is not None else None

    def stop(self) -> Iterator[_Parsed]:
        """Stop and return the readings; empty when called again."""
        files, self._files = self._files, None
        return map(self._parse, files.stop() if files is not None else ())

    def _parse(self, reading: Reading) -> _Parsed:
        due_ns, begun_ns, ended_ns, texts, replies = reading
        count = len(self._sources)
        others = [(position - count, text) for position, text in texts if position >= count]
        if not count:
            return _Parsed((begun_ns + ended_ns) // 2, None, others)
        counters = parse_texts(
            (self._sources[position].parse, text) for position, text in texts if position < count
        )
        queue = parse_replies(replies, self._port) if self._port is not None else None
        sample = _sample((due_ns, begun_ns, ended_ns), counters, queue)
        return _Parsed(sample.t_ns, sample, others)


def _spaced(paths: Iterable[Path]) -> list[tuple[str, int]]:
    return [(str(path), PROCESS_SPACING_NS) for path in paths]


class _PollingReader:
    """Reads a group without counter files in a Python thread."""

    def __init__(
        self, group: Countable, host: CounterSource, port: int | None, interval_ns: int
    ) -> None:
        self._group = group
        self._host = CounterFiles([host])
        self._port = port
        self._interval_ns = interval_ns
        self._stopping = threading.Event()
        self._samples: list[Sample] = []
        self._thread = threading.Thread(target=self._run, name="wsgiload-sampler", daemon=True)

    @property
    def samples(self) -> tuple[Sample, ...]:
        return tuple(self._samples)

    def latest(self) -> Sample | None:
        return self._samples[-1] if self._samples else None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        self._host.close()

    def _run(self) -> None:
        due_ns = time.monotonic_ns()
        while not self._stopping.wait(max(0, due_ns - time.monotonic_ns()) / NS_PER_S):
            self._samples.append(self._take(due_ns))
            # skip missed samples instead of catching up
            missed = max(0, time.monotonic_ns() - due_ns) // self._interval_ns
            due_ns += (missed + 1) * self._interval_ns
        self._samples.append(self._take(time.monotonic_ns()))

    def _take(self, due_ns: int) -> Sample:
        begun_ns = time.monotonic_ns()
        try:
            counters = self._group.read_counters()
        except Exception:  # a failing source must not end the sampler
            counters = Counters()
        queue = read_listen_queue(self._port) if self._port is not None else None
        host = self._host.read()
        counters = replace(counters, steal_ns=host.steal_ns, host_busy_ns=host.host_busy_ns)
        return _sample((due_ns, begun_ns, time.monotonic_ns()), counters, queue)


def _sample(
    times_ns: tuple[int, int, int], counters: Counters, queue: ListenQueue | None
) -> Sample:
    due_ns, begun_ns, ended_ns = times_ns
    if queue is not None:
        counters = replace(counters, listen_queue=queue.queue, listen_drops=queue.drops)
    return Sample(
        (begun_ns + ended_ns) // 2, max(0, begun_ns - due_ns), counters, ended_ns - begun_ns
    )


def _waits(usage: Iterable[ProcessUsage]) -> dict[int, int]:
    """The total run-queue wait of all processes, by time."""
    waits: dict[int, int] = {}
    for process in usage:
        waits[process.t_ns] = waits.get(process.t_ns, 0) + process.run_queue_wait_ns
    return waits


def _host_times(text: str) -> dict[str, int]:
    """The busy time and the steal time of all cores, from the first line of /proc/stat."""
    fields = [int(field) for field in text.partition("\n")[0].split()[1:9]]
    if len(fields) < 8:
        return {}
    user, nice, system, _idle, _wait, interrupt, soft_interrupt, steal = fields
    tick_ns = NS_PER_S // os.sysconf("SC_CLK_TCK")
    busy = user + nice + system + interrupt + soft_interrupt
    return {"steal_ns": steal * tick_ns, "host_busy_ns": busy * tick_ns}
