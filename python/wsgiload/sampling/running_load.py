"""A running load for progress displays: the generator's progress and the server's latest counters.

Only reads data that the generator and the sampler produce anyway.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from wsgiload.documents.load_plan import LoadPlan
from wsgiload.loads.progress import LoadProgress, ProgressFile
from wsgiload.sampling.sampler import Sampler
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
