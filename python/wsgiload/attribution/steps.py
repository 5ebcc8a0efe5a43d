"""Changes of a cgroup's counters between samples, in steps of at least one CPU period. Pure.

Shorter steps would be misleading, because the kernel counts a throttled period when it ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from wsgiload.sampling.sampler import Sample

CFS_PERIOD_NS = 100_000_000
# Sampling times vary slightly, so nine tenths of a period count as a whole one.
MIN_STEP_SHARE = 0.9
_COUNTERS = (
    "cpu_usage_ns",
    "nr_periods",
    "nr_throttled",
    "psi_cpu_some_ns",
    "psi_cpu_full_ns",
    "psi_memory_some_ns",
    "memory_high",
    "listen_drops",
)


@dataclass(frozen=True, slots=True)
class Step:
    """Differences of counters between two samples; None if a counter is unknown or was reset."""

    start_ns: int
    end_ns: int
    cpu_usage_ns: int | None = None
    nr_periods: int | None = None
    nr_throttled: int | None = None
    psi_cpu_some_ns: int | None = None
    psi_cpu_full_ns: int | None = None
    psi_memory_some_ns: int | None = None
    memory_high: int | None = None
    listen_drops: int | None = None
    # Length of the accept queue at the start and the end of the step.
    queue_before: int | None = None
    queue_after: int | None = None

    @property
    def length_ns(self) -> int:
        """The length of the step."""
        return self.end_ns - self.start_ns

    def share(self, name: str) -> float | None:
        """The named time counter as a share of the step's length; above 1 for several cores."""
        value: int | None = getattr(self, name)
        return None if value is None or not self.length_ns else value / self.length_ns

    @property
    def is_throttled(self) -> bool:
        """Whether a throttled period ended in the step."""
        return bool(self.nr_throttled)


def steps_of(samples: Sequence[Sample], min_ns: int = CFS_PERIOD_NS) -> list[Step]:
    """The steps between samples, without samples whose counters were read at different times
    (``is_wide``)."""
    min_ns = round(min_ns * MIN_STEP_SHARE)
    steps: list[Step] = []
    known: dict[str, int] = {}
    start: tuple[Sample, dict[str, int]] | None = None
    for sample in (sample for sample in samples if not sample.is_wide):
        # Some counters are read less often; their last value stays valid.
        known = known | dict(_values(sample))
        if start is None:
            start = (sample, known)
        elif sample.t_ns - start[0].t_ns >= min_ns:
            steps.append(_between(start, (sample, known)))
            start = (sample, known)
    return steps


def _values(sample: Sample) -> Iterable[tuple[str, int]]:
    for name in (*_COUNTERS, "listen_queue"):
        value = getattr(sample.counters, name)
        if value is not None:
            yield name, value


def _between(before: tuple[Sample, dict[str, int]], after: tuple[Sample, dict[str, int]]) -> Step:
    (first, early), (last, late) = before, after
    growth = {
        name: late[name] - early[name] for name in _COUNTERS if name in early and name in late
    }
    return Step(
        first.t_ns,
        last.t_ns,
        **{name: change for name, change in growth.items() if change >= 0},
        queue_before=early.get("listen_queue"),
        queue_after=late.get("listen_queue"),
    )
