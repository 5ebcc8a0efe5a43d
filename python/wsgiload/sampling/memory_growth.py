"""Detects memory that kept growing during a measurement. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from wsgiload.sampling.sampler import Sample
from wsgiload.units import NS_PER_S

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
