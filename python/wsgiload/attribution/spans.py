"""Time spans in which a server was delayed, from the counters of its cgroup. Pure.

The signals were chosen by provoking each cause in experiments: throttled periods indicate
throttling, PSI indicates missing CPU time, and an accept queue that does not shrink during low CPU
use and low PSI indicates a pause inside the process.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

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


# Shorter steps than one CPU period would be misleading, because the kernel counts a throttled
# period when it ends.
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


Span = tuple[int, int]

# Shares of a step's length.
WAITED_FOR_CPU = 0.2
WAITED_FOR_MEMORY = 0.1
FLAT = 0.1
# A paused server uses at most this share of its median CPU use while it uses any. Pauses of a
# server whose median is below the second figure (in cores) cannot be detected.
DOWN_TO = 0.1
MIN_USUAL_CORES = 0.01
# A collection or computation occupies one thread for more than half of a step (in cores), and the
# CPU use exceeds its median by this factor.
BUSY_CORES, BUSIER = 0.6, 1.5


def throttled(steps: Sequence[Step], period_ns: int = CFS_PERIOD_NS) -> list[Span]:
    """Spans around throttled periods. They begin one period before the step, because the kernel
    counts a period when it ends."""
    return joined((step.start_ns - period_ns, step.end_ns) for step in steps if step.is_throttled)


def cpu_wait(steps: Sequence[Step]) -> list[Span]:
    """Spans in which all runnable tasks of the group waited for a CPU without throttling or memory
    pressure."""
    return joined(
        (step.start_ns, step.end_ns)
        for step in unlimited(steps)
        if (step.share("psi_cpu_full_ns") or 0) >= WAITED_FOR_CPU
    )


def unthrottled(steps: Sequence[Step]) -> list[Step]:
    """Steps without throttling in the step itself or in the next one, because a throttled period
    that begins in one step may be counted in the next."""
    following = (*steps, None)[1:]
    return [
        step
        for step, after in zip(steps, following, strict=True)
        if not step.is_throttled and not (after is not None and after.is_throttled)
    ]


def unlimited(steps: Sequence[Step]) -> list[Step]:
    """Steps without throttling or memory pressure. Under memory pressure, the kernel reclaims
    memory on the group's CPUs, so CPU waits are not due to other processes."""
    return [step for step in unthrottled(steps) if not is_short_of_memory(step)]


def paused(steps: Sequence[Step]) -> list[Span]:
    """Spans in which connections waited to be accepted while the processes neither ran nor were
    runnable."""
    usual = [share for step in steps if (share := step.share("cpu_usage_ns"))]
    if not usual or median(usual) < MIN_USUAL_CORES:
        return []
    limit = DOWN_TO * median(usual)
    return joined(
        (step.start_ns, step.end_ns) for step in unthrottled(steps) if _is_stalled(step, limit)
    )


def _is_stalled(step: Step, max_cores: float) -> bool:
    cores, waited = step.share("cpu_usage_ns"), step.share("psi_cpu_some_ns")
    is_idle = cores is not None and cores <= max_cores and waited is not None and waited < FLAT
    return is_idle and _accept_queue_did_not_shrink(step)


def _accept_queue_did_not_shrink(step: Step) -> bool:
    """Whether the queue was not empty at the start of the step and no shorter at its end.

    The length at the end is not sufficient: a connection that arrives at an idle server is briefly
    in the queue, too.
    """
    return (
        step.queue_before is not None
        and step.queue_after is not None
        and 0 < step.queue_before <= step.queue_after
    )


def busy(steps: Sequence[Step], stalls: Sequence[Span]) -> list[Span]:
    """The stalls in which the server used more CPU than usual."""
    usual = [share for step in steps if (share := step.share("cpu_usage_ns")) is not None]
    if not usual:
        return []
    min_cores = max(BUSY_CORES, BUSIER * median(usual))
    return [stall for stall in stalls if (_max_cores_in(steps, stall) or 0.0) >= min_cores]


def _max_cores_in(steps: Sequence[Step], stall: Span) -> float | None:
    """Cores used in the busiest step of which more than half lies in the stall; None without such
    a step."""
    shares = [
        share
        for step in unthrottled(steps)
        if min(step.end_ns, stall[1]) - max(step.start_ns, stall[0]) > step.length_ns / 2
        and (share := step.share("cpu_usage_ns")) is not None
    ]
    return max(shares, default=None)


def memory_pressure(steps: Sequence[Step]) -> list[Span]:
    """Spans in which a task of the group waited for memory or was throttled at ``memory.high``."""
    return joined((step.start_ns, step.end_ns) for step in steps if is_short_of_memory(step))


def is_short_of_memory(step: Step) -> bool:
    """Whether a task of the group waited for memory or was throttled at ``memory.high``."""
    return (step.share("psi_memory_some_ns") or 0) >= WAITED_FOR_MEMORY or bool(step.memory_high)


def joined(spans: Iterable[Span]) -> list[Span]:
    """The union of the spans, in order."""
    union: list[Span] = []
    for start_ns, end_ns in sorted(spans):
        if union and start_ns <= union[-1][1]:
            union[-1] = (union[-1][0], max(union[-1][1], end_ns))
        else:
            union.append((start_ns, end_ns))
    return union


def total_ns(spans: Iterable[Span]) -> int:
    """The total length of the spans."""
    return sum(end_ns - start_ns for start_ns, end_ns in spans)
