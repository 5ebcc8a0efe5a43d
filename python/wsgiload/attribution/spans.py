"""Spans of time in which something held a server up, by the counters of its group. Pure.

Which signal tells what was found by making each cause on purpose: throttling by the count of
throttled periods, a lack of CPU time by PSI, a pause inside the process by its accept queue while
its CPU use is down and PSI is flat.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from wsgiload.attribution.steps import CFS_PERIOD_NS, Step

Span = tuple[int, int]

# Shares of a step.
WAITED_FOR_CPU = 0.2
WAITED_FOR_MEMORY = 0.1
FLAT = 0.1
# Of the CPU use that is usual in the run; below the second figure a server is never busy enough to
# be seen pausing.
DOWN_TO = 0.1
LEAST_USUAL_CORES = 0.03
# One thread at work for more than half of a step, which a collection or a computation is; and by
# how much that must exceed the usual.
BUSY_CORES, BUSIER = 0.6, 1.5


def throttled(steps: Sequence[Step], period_ns: int = CFS_PERIOD_NS) -> list[Span]:
    """Around throttled periods, from one period before the step in which they were booked, when
    they ended."""
    return joined((step.start_ns - period_ns, step.end_ns) for step in steps if step.is_throttled)


def cpu_wait(steps: Sequence[Step]) -> list[Span]:
    """In which every task of the group that could run waited for a CPU, and nothing of its own
    explains it."""
    return joined(
        (step.start_ns, step.end_ns)
        for step in unlimited(steps)
        if (step.share("psi_cpu_full_ns") or 0) >= WAITED_FOR_CPU
    )


def unthrottled(steps: Sequence[Step]) -> list[Step]:
    """Steps without throttling, in themselves or in the next one, which may have booked a period
    that began here."""
    following = (*steps, None)[1:]
    return [
        step
        for step, after in zip(steps, following, strict=True)
        if not step.is_throttled and not (after is not None and after.is_throttled)
    ]


def unlimited(steps: Sequence[Step]) -> list[Step]:
    """Steps without throttling in which nothing waited for memory: the kernel finds room for a
    group that is short of it on the group's own cores, and that is nobody else's doing."""
    return [step for step in unthrottled(steps) if not is_short_of_memory(step)]


def paused(steps: Sequence[Step]) -> list[Span]:
    """In which connections waited to be accepted while the processes neither ran nor wanted to."""
    usual = [share for step in steps if (share := step.share("cpu_usage_ns")) is not None]
    if not usual or median(usual) < LEAST_USUAL_CORES:
        return []
    limit = DOWN_TO * median(usual)
    return joined(
        (step.start_ns, step.end_ns) for step in unthrottled(steps) if _stands_still(step, limit)
    )


def _stands_still(step: Step, most_cores: float) -> bool:
    cores, waited = step.share("cpu_usage_ns"), step.share("psi_cpu_some_ns")
    is_idle = cores is not None and cores <= most_cores and waited is not None and waited < FLAT
    return is_idle and _nobody_was_accepted(step)


def _nobody_was_accepted(step: Step) -> bool:
    """Whether the queue was not empty at the start of the step and no shorter at its end.

    The end alone would not tell: after a lull without arrivals, the next one is in the queue for a
    moment too.
    """
    return (
        step.queue_before is not None
        and step.queue_after is not None
        and 0 < step.queue_before <= step.queue_after
    )


def busy(steps: Sequence[Step], stalls: Sequence[Span]) -> list[Span]:
    """Those of the stalls in which the server computed, and more than it usually does."""
    usual = [share for step in steps if (share := step.share("cpu_usage_ns")) is not None]
    if not usual:
        return []
    least = max(BUSY_CORES, BUSIER * median(usual))
    return [stall for stall in stalls if (_most_cores_in(steps, stall) or 0.0) >= least]


def _most_cores_in(steps: Sequence[Step], stall: Span) -> float | None:
    """Cores used in the busiest step that lies inside for the most part; None without one."""
    shares = [
        share
        for step in unthrottled(steps)
        if min(step.end_ns, stall[1]) - max(step.start_ns, stall[0]) > step.length_ns / 2
        and (share := step.share("cpu_usage_ns")) is not None
    ]
    return max(shares, default=None)


def memory_pressure(steps: Sequence[Step]) -> list[Span]:
    """In which something in the group waited for memory, or was slowed down at its
    ``memory.high``."""
    return joined((step.start_ns, step.end_ns) for step in steps if is_short_of_memory(step))


def is_short_of_memory(step: Step) -> bool:
    """Whether something in the group waited for memory, or was slowed down at its
    ``memory.high``."""
    return (step.share("psi_memory_some_ns") or 0) >= WAITED_FOR_MEMORY or bool(step.memory_high)


def joined(spans: Iterable[Span]) -> list[Span]:
    """The same time without overlaps, in order."""
    union: list[Span] = []
    for start_ns, end_ns in sorted(spans):
        if union and start_ns <= union[-1][1]:
            union[-1] = (union[-1][0], max(union[-1][1], end_ns))
        else:
            union.append((start_ns, end_ns))
    return union


def total_ns(spans: Iterable[Span]) -> int:
    """How long they are together."""
    return sum(end_ns - start_ns for start_ns, end_ns in spans)
