"""A running load for progress displays: the generator's progress and the server's latest counters;
and the samples of an attached server for its report.

Only reads data that the generator and the sampler produce anyway.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from wsgiload.documents.load_plan import LoadPlan
from wsgiload.documents.load_report import AttachedResources, LoadReport
from wsgiload.limits.attach import Attached
from wsgiload.limits.files import CounterSource
from wsgiload.limits.model import Counters
from wsgiload.loads.drive import DEFAULT_PORTS, LoadProgress, ProgressFile
from wsgiload.sampling.listen_queue import listener_pids
from wsgiload.sampling.resources import measured_window, summarise
from wsgiload.sampling.sampler import HOST_SPACING_NS, Sample, Sampler
from wsgiload.units import NS_PER_S

# Rates and CPU use cover about the last second.
RECENT_NS = NS_PER_S


@dataclass(frozen=True, slots=True)
class LoadState:
    """The state of a running load; None: unknown."""

    progress: LoadProgress | None = None
    offered_per_s: float | None = None
    achieved_per_s: float | None = None
    cpu_cores: float | None = None
    memory_bytes: int | None = None


class RecentRates:
    """Computes rates of counters over about the last second."""

    def __init__(self) -> None:
        self._readings: deque[tuple[int, tuple[int, ...]]] = deque()

    def rates_per_s(self, at_ns: int, counts: tuple[int, ...]) -> tuple[float, ...] | None:
        """The rate of each counter over about the last second; None at first."""
        if not self._readings or at_ns > self._readings[-1][0]:
            self._readings.append((at_ns, counts))
        while len(self._readings) > 2 and self._readings[1][0] <= at_ns - RECENT_NS:
            self._readings.popleft()
        (from_ns, before), (to_ns, now) = self._readings[0], self._readings[-1]
        if to_ns == from_ns:
            return None
        elapsed_s = (to_ns - from_ns) / NS_PER_S
        return tuple(
            (later - earlier) / elapsed_s for later, earlier in zip(now, before, strict=True)
        )


@dataclass(slots=True)
class RunningLoad:
    """A running load, with the server's sampler and limits if known."""

    plan: LoadPlan
    file: ProgressFile
    sampler: Sampler | None = None
    cpus: float | None = None
    memory_limit_bytes: float | None = None
    _requests: RecentRates = field(default_factory=RecentRates)
    _usage: RecentRates = field(default_factory=RecentRates)
    _memory_bytes: int | None = None

    def state(self) -> LoadState:
        """The current state; costs a few small reads."""
        progress = self.file.read(self.plan.threads * self.plan.processes)
        rates: tuple[float, ...] | None = None
        if progress is not None:
            counts = (progress.scheduled, progress.answered)
            rates = self._requests.rates_per_s(progress.at_ns, counts)
        offered_per_s, achieved_per_s = rates or (None, None)

        return LoadState(
            progress=progress,
            offered_per_s=offered_per_s,
            achieved_per_s=achieved_per_s,
            cpu_cores=self._cpu_cores(),
            memory_bytes=self._memory_bytes,
        )

    def _cpu_cores(self) -> float | None:
        sample = self.sampler.latest() if self.sampler is not None else None
        if sample is None:
            return None
        # Not every sample includes the memory.
        if sample.counters.unreclaimable_bytes is not None:
            self._memory_bytes = sample.counters.unreclaimable_bytes
        if sample.counters.cpu_usage_ns is None:
            return None
        used = self._usage.rates_per_s(sample.t_ns, (sample.counters.cpu_usage_ns,))
        return used[0] / NS_PER_S if used is not None else None


class LoadEvents:
    """Receives the events of every load; this base class ignores them."""

    is_watching = False

    def load_started(self, load: RunningLoad) -> None:
        """The load starts."""

    def load_ended(self) -> None:
        """The load has ended; its progress must no longer be read."""


@contextmanager
def watched(
    events: LoadEvents,
    plan: LoadPlan,
    sampler: Sampler | None = None,
    limits: tuple[float | None, float | None] = (None, None),
) -> Iterator[ProgressFile | None]:
    """The file to which the load of this plan writes its progress while the block lasts; None if
    ``events`` is not watching. ``limits`` are the server's CPUs and bytes of memory."""
    if not events.is_watching:
        yield None
        return
    with ProgressFile() as file:
        events.load_started(RunningLoad(plan, file, sampler, *limits))
        try:
            yield file
        finally:
            events.load_ended()


@dataclass(slots=True)
class Observation:
    """A server that wsgiload did not start, and its samples."""

    attached: Attached
    samples: tuple[Sample, ...] = field(default=())
    # The sampler while it is running.
    sampler: Sampler | None = None

    @property
    def limits(self) -> tuple[float | None, float | None]:
        """Its CPU limit in cores and its memory limit in bytes; None: no limit."""
        limits = self.attached.effective_limits
        return limits["effective_cpus"], limits["effective_memory_bytes"]

    def resources(self, load: LoadReport) -> AttachedResources:
        """Its resource use during the measurement of this load."""
        window, ok_count = measured_window(load)
        limits = self.attached.effective_limits
        return AttachedResources(
            source=self.attached.source,
            name=self.attached.name,
            effective_cpus=limits["effective_cpus"],
            effective_memory_bytes=limits["effective_memory_bytes"],
            effective_pids=limits["effective_pids"],
            used=summarise(self.samples, window, ok_count),
        )


@contextmanager
def observing(attached: Attached, url: str) -> Iterator[Observation]:
    """Sample the server while the block lasts."""
    observation = Observation(attached)
    try:
        with Sampler(attached, port=_server_port(attached, url)) as sampler:
            observation.sampler = sampler
            try:
                yield observation
            finally:
                observation.samples = sampler.stop()
    finally:
        attached.close()


class _NoServer:
    """Has no counters, so only the host is sampled."""

    def read_counters(self) -> Counters:
        return Counters()

    def sources(self) -> tuple[CounterSource, ...]:
        return ()


def host_sampler() -> Sampler:
    """Samples the host's CPU counters without a server; use it as a context manager."""
    return Sampler(_NoServer(), interval_ns=HOST_SPACING_NS)


def _server_port(attached: Attached, url: str) -> int | None:
    """The URL's port if the attached server itself listens on it. A container's accept queue is not
    visible, and a proxy's does not belong to the server."""
    parts = urlsplit(url)
    port = parts.port or DEFAULT_PORTS.get(parts.scheme)
    owners = listener_pids(port) if port is not None else None
    return port if owners and owners <= set(attached.pids()) else None
