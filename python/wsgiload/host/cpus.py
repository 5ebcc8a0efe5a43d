"""Assigns processors to the server, the load generator and the orchestrator.

Pure decisions about core numbers; processes are pinned where they are started. Only ``pinned``
changes an affinity.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from wsgiload.errors import UsageError

# More than any kernel supports; bounds the memory for a range.
MAX_CPUS = 1 << 16
MAX_DIGITS = 40
# With fewer cores, none can be left to the operating system.
CORES_WITH_ONE_TO_SPARE = 4


@dataclass(frozen=True, slots=True)
class Processor:
    """A processor and what it shares; each group is named by its lowest member."""

    number: int
    core: int  # its hardware threads compete for execution units
    cache: int  # of the last level
    node: int  # of memory


@dataclass(frozen=True, slots=True)
class CpuPlan:
    """The processors of both sides, and of the orchestrator with its sampler.

    ``shared_cores``: client and server share a core, or two hardware threads of one.
    """

    server_cpus: tuple[int, ...]
    client_cpus: tuple[int, ...]
    shared_cores: bool
    orchestrator_cpus: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Core:
    """The available hardware threads of a core."""

    processors: tuple[int, ...]
    cache: int
    node: int

    def has_any(self, numbers: Collection[int]) -> bool:
        return not set(self.processors).isdisjoint(numbers)


def available_cpus() -> tuple[int, ...]:
    """The processors on which this process may run; may be fewer than the machine has."""
    if not hasattr(os, "sched_getaffinity"):  # macOS
        return tuple(range(os.cpu_count() or 1))
    return tuple(sorted(os.sched_getaffinity(0)))


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """Parse the kernel's list format, ``1,3-5``, to sorted distinct numbers."""
    cores: set[int] = set()
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        first, dash, last = part.partition("-")
        if not _is_number(first) or (dash and not _is_number(last)):
            raise UsageError(
                f"'{part}' is not a core or a range of cores", "write cores like 1,3-5"
            )
        if max(len(first), len(last)) > MAX_DIGITS or int(last or first) >= MAX_CPUS:
            raise UsageError(
                f"'{part[:MAX_DIGITS]}' exceeds the highest core number, {MAX_CPUS - 1}",
                "write cores like 1,3-5",
            )
        low, high = int(first), int(last or first)
        if high < low:
            raise UsageError(f"invalid core range '{part}'", f"write {high}-{low}")
        cores.update(range(low, high + 1))
    return tuple(sorted(cores))


def format_cpu_list(cores: Sequence[int]) -> str:
    """Numbers in the kernel's list format: ``(1, 3, 4, 5)`` becomes ``1,3-5``."""
    runs: list[list[int]] = []
    for core in sorted(set(cores)):
        if runs and core == runs[-1][1] + 1:
            runs[-1][1] = core
        else:
            runs.append([core, core])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def assign_cpus(
    available: Sequence[int],
    cpus: float | None,
    server: tuple[int, ...] | None,
    client: tuple[int, ...] | None,
    topology: Sequence[Processor] = (),
) -> CpuPlan:
    """Divide the available processors; explicit choices of the caller are used unchanged.

    Both sides get whole cores, and only one hardware thread of each if there are enough cores,
    preferably with a common cache or at least on one memory node. With four or more cores, the
    first is left to the operating system, whose interrupts prefer it, and to the orchestrator. The
    server gets the last cores. If no core is left for the client, both sides share.
    """
    numbers = tuple(sorted(set(available)))
    if not numbers:
        raise UsageError("no core is available", "check the CPU affinity of this process")
    cores = _cores(numbers, topology)
    named_client = named_cores(client, numbers, "client")
    server_cpus = named_cores(server, numbers, "server") or _default_server(
        cores, cpus, named_client
    )
    client_cpus = named_client or _default_client(cores, server_cpus)
    shared = any(core.has_any(server_cpus) and core.has_any(client_cpus) for core in cores)
    return CpuPlan(server_cpus, client_cpus, shared, _orchestrator(cores, server_cpus, client_cpus))


def named_cores(
    requested: tuple[int, ...] | None, cores: tuple[int, ...], side: str
) -> tuple[int, ...]:
    """The user's choice for one side, sorted. Raises UsageError for unavailable processors."""
    unknown = sorted(set(requested or ()) - set(cores))
    if unknown:
        raise UsageError(
            f"--{side}-cpus names {format_cpu_list(unknown)}, but only "
            f"{format_cpu_list(cores)} are available",
            f"choose --{side}-cpus from {format_cpu_list(cores)}",
        )
    return tuple(sorted(set(requested or ())))


def _cores(numbers: Sequence[int], topology: Sequence[Processor]) -> list[_Core]:
    """The cores in the order of their first processor; a processor that the topology does not
    contain counts as a separate core."""
    known = {processor.number: processor for processor in topology}
    members: dict[int, list[Processor]] = {}
    for number in numbers:
        processor = known.get(number) or Processor(number, core=number, cache=0, node=0)
        members.setdefault(processor.core, []).append(processor)
    return [
        _Core(tuple(one.number for one in group), group[0].cache, group[0].node)
        for group in members.values()
    ]


def _default_server(
    cores: list[_Core], cpus: float | None, client: tuple[int, ...]
) -> tuple[int, ...]:
    free = [core for core in cores if not core.has_any(client)]
    count = max(1, len(cores) // 2) if cpus is None else math.ceil(cpus)
    if cpus is None:
        count = min(count, len(free) or count)
    for_client = 0 if client else 1
    choices = [choice[for_client:] for choice in _neighbourhoods(_without_first(cores, free), free)]
    for choice in choices:
        if len(choice) >= count:
            return tuple(core.processors[0] for core in choice[-count:])
    for choice in choices:
        threads = [number for core in reversed(choice) for number in core.processors]
        if len(threads) >= count:
            return tuple(sorted(threads[:count]))
    return tuple(sorted(number for core in cores for number in core.processors))[-count:]


def _default_client(cores: list[_Core], server: tuple[int, ...]) -> tuple[int, ...]:
    free = [core for core in cores if not core.has_any(server)]
    if not free:
        everything = tuple(sorted(number for core in cores for number in core.processors))
        return tuple(number for number in everything if number not in server) or everything
    spare = _without_first(cores, free) or free
    caches = {core.cache for core in cores if core.has_any(server)}
    nodes = {core.node for core in cores if core.has_any(server)}
    near = (
        [core for core in spare if core.cache in caches]
        or [core for core in spare if core.node in nodes]
        or spare
    )
    if len(near) == 1:
        return near[0].processors
    return tuple(core.processors[0] for core in near)


def _orchestrator(
    cores: list[_Core], server: tuple[int, ...], client: tuple[int, ...]
) -> tuple[int, ...]:
    first = cores[0]
    is_spare = (
        len(cores) >= CORES_WITH_ONE_TO_SPARE
        and not first.has_any(server)
        and not first.has_any(client)
    )
    return first.processors if is_spare else client


def _without_first(cores: list[_Core], free: list[_Core]) -> list[_Core]:
    """The free cores without the operating system's core, if there are enough."""
    return (
        [core for core in free if core is not cores[0]]
        if len(cores) >= CORES_WITH_ONE_TO_SPARE
        else free
    )


def _neighbourhoods(spare: list[_Core], free: list[_Core]) -> Iterator[list[_Core]]:
    """Groups of nearby cores, the nearest first: with a common cache, on one node, any, and
    including the first core."""
    for key in (lambda core: (core.node, core.cache), lambda core: (core.node,)):
        groups: dict[tuple[int, ...], list[_Core]] = {}
        for core in spare:
            groups.setdefault(key(core), []).append(core)
        # the largest group first; of equal ones, the last
        yield from sorted(
            groups.values(), key=lambda group: (len(group), group[-1].processors), reverse=True
        )
    yield spare
    yield free


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


@contextmanager
def pinned(cpus: tuple[int, ...]) -> Iterator[None]:
    """Keep this process and its sampler off the server's cores during the block."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
