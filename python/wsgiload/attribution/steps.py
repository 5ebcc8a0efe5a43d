"""What happened to a server's group between two looks at it, in steps of at least one CPU period.

Pure: samples in, differences out. A shorter step would be misleading: the kernel books a throttled
period when it ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from wsgiload.sampling.sampler import Sample

CFS_PERIOD_NS = 100_000_000
# Samples come a little early or late; a step of nine tenths of a period is meant to be one.
LEAST_STEP_SHARE = 0.9
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
    """Differences of counters between two samples; None where they are unknown or began anew."""

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
    # At either end of the step.
    queue_before: int | None = None
    queue_after: int | None = None

    @property
    def length_ns(self) -> int:
        """How long it is."""
        return self.end_ns - self.start_ns

    def share(self, name: str) -> float | None:
        """A time that passed in it, to its length."""
        value: int | None = getattr(self, name)
        return None if value is None or not self.length_ns else value / self.length_ns

    @property
    def is_throttled(self) -> bool:
        """Whether a period with throttling ended in it."""
        return bool(self.nr_throttled)


def steps_of(samples: Sequence[Sample], least_ns: int = CFS_PERIOD_NS) -> list[Step]:
    """The steps between samples that are pictures of one moment."""
    least_ns = round(least_ns * LEAST_STEP_SHARE)
    steps: list[Step] = []
    known: dict[str, int] = {}
    begun: tuple[Sample, dict[str, int]] | None = None
    for sample in (sample for sample in samples if not sample.is_wide):
        # What is read more rarely than the rest stays what it was.
        known = known | dict(_values(sample))
        if begun is None:
            begun = (sample, known)
        elif sample.t_ns - begun[0].t_ns >= least_ns:
            steps.append(_between(begun, (sample, known)))
            begun = (sample, known)
    return steps


def _values(sample: Sample) -> Iterable[tuple[str, int]]:
    for name in (*_COUNTERS, "listen_queue"):
        value = getattr(sample.counters, name)
        if value is not None:
            yield name, value


def _between(before: tuple[Sample, dict[str, int]], after: tuple[Sample, dict[str, int]]) -> Step:
    (first, early), (last, late) = before, after
    grown = {name: late[name] - early[name] for name in _COUNTERS if name in early and name in late}
    return Step(
        first.t_ns,
        last.t_ns,
        **{name: growth for name, growth in grown.items() if growth >= 0},
        queue_before=early.get("listen_queue"),
        queue_after=late.get("listen_queue"),
    )
