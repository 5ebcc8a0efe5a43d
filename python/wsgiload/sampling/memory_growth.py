"""Whether a server's memory kept growing during the measurement. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from wsgiload.sampling.sampler import Sample
from wsgiload.units import NS_PER_S

# Smaller growth is insignificant: an allocator's arenas, one more buffer per connection.
LEAST_GROWTH_BYTES, LEAST_GROWTH = 10 << 20, 0.2
# Caches and pools fill up and level off. Memory that keeps growing does so in each quarter of the
# time; if it levels off exponentially, the last quarter has at least a tenth of the growth.
QUARTERS = 4
LEAST_LAST_QUARTER = 0.15
FEWEST_SAMPLES, SHORTEST_NS = 20, 5 * NS_PER_S


@dataclass(frozen=True, slots=True)
class MemoryGrowth:
    """How much the memory of the server's processes grew while requests were served."""

    grown_bytes: int
    """Proportional set size after the load less that before it: without the file cache."""
    length_ns: int
    memory_bytes: int
    """What the group used at the end, file cache included: what its limit counts."""

    @property
    def bytes_per_s(self) -> float:
        """Mean growth."""
        return self.grown_bytes / (self.length_ns / NS_PER_S)


def memory_growth(
    samples: Sequence[Sample], before_bytes: int | None, after_bytes: int | None
) -> MemoryGrowth | None:
    """A growth that did not level off; None if there is none, or if too little is known.

    The private memory of the processes (``before_bytes``, ``after_bytes``) gives the amount; the
    samples of the group show whether it continues.
    """
    points = [
        (sample.t_ns, sample.counters.memory_bytes)
        for sample in samples
        if sample.counters.memory_bytes is not None
    ]
    if before_bytes is None or after_bytes is None or len(points) < FEWEST_SAMPLES:
        return None

    length_ns = points[-1][0] - points[0][0]
    grown_bytes = after_bytes - before_bytes
    is_large = grown_bytes >= max(LEAST_GROWTH_BYTES, LEAST_GROWTH * before_bytes)
    if length_ns < SHORTEST_NS or not is_large or not _goes_on([value for _, value in points]):
        return None
    return MemoryGrowth(grown_bytes, length_ns, points[-1][1])


def _goes_on(values: Sequence[int]) -> bool:
    """Whether each quarter is larger than the one before, up to the end."""
    size = len(values) / QUARTERS
    means = [fmean(values[round(n * size) : round((n + 1) * size)]) for n in range(QUARTERS)]
    steps = [later - earlier for earlier, later in pairwise(means)]
    return min(steps) > 0 and steps[-1] >= LEAST_LAST_QUARTER * sum(steps)
