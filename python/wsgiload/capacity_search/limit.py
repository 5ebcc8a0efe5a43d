"""The resource that limited a server in the trials that missed the objective. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wsgiload.analysis.effective_limit import effective_limit
from wsgiload.documents.capacity import LimitedBy
from wsgiload.documents.cell_result import CellResult, ServiceUse
from wsgiload.findings.services import BUSY_SHARE, are_all_idle, bottleneck_of

# Trials at much higher rates overload the server, which hides its actual limit.
NEAR = 1.25
# If a quota throttles 1 of 20 periods, it affects the tail latency.
THROTTLED_SHARE = 0.05
_SHORT_OF_MEMORY = {"oom_kill", "memory_pressure"}


def limit_of(cells: Sequence[CellResult], upper_per_s: float | None) -> LimitedBy | None:
    """The limit that was reached in most of the trials that missed the objective just above the
    capacity; None if there were no such trials or no samples.

    Memory is checked first, because a server under memory pressure spends CPU time on reclaim. Then
    follow the CPU, a service, the workers, and the accept queue, which fills up as a consequence of
    the other limits.
    """
    missed = _missed_near(cells, upper_per_s)
    for limit, is_met in _LIMITS.items():
        if missed and sum(map(is_met, missed)) > len(missed) / 2:
            return limit
    return None


def limiting_services(cells: Sequence[CellResult], upper_per_s: float | None) -> tuple[str, ...]:
    """The services that were the bottleneck in these trials."""
    bottlenecks = (_bottleneck(cell) for cell in _missed_near(cells, upper_per_s))
    return tuple(dict.fromkeys(one.name for one in bottlenecks if one is not None))


def _missed_near(cells: Sequence[CellResult], upper_per_s: float | None) -> list[CellResult]:
    return [
        cell
        for cell in cells
        if cell.rate is not None and upper_per_s is not None and cell.rate <= NEAR * upper_per_s
    ]


def _memory(cell: CellResult) -> bool:
    fingerprints = cell.attribution.fingerprints if cell.attribution is not None else ()
    return any(one.name in _SHORT_OF_MEMORY for one in fingerprints)


def _cpu_limit(cell: CellResult) -> bool:
    cores, limit = _cores(cell), effective_limit(cell.limits, "cpus")
    throttled = cell.resources.throttled_period_ratio if cell.resources is not None else None
    is_full = cores is not None and limit is not None and cores >= BUSY_SHARE * limit
    return is_full or (throttled is not None and throttled >= THROTTLED_SHARE)


def _one_core_per_process(cell: CellResult) -> bool:
    """Whether every worker process uses the one core that its global interpreter lock allows."""
    cores, workers = _cores(cell), cell.settings.workers if cell.settings is not None else None
    return cores is not None and cores >= BUSY_SHARE * (workers or 1)


def _bottleneck(cell: CellResult) -> ServiceUse | None:
    return bottleneck_of(cell.services, _cores(cell), effective_limit(cell.limits, "cpus"))


def _service(cell: CellResult) -> bool:
    return _bottleneck(cell) is not None


def _waiting(cell: CellResult) -> bool:
    """Whether the server waits for a thread or a connection, because neither it nor any service
    lacks CPU time."""
    return are_all_idle(cell.services, _cores(cell), effective_limit(cell.limits, "cpus"))


def _workers(cell: CellResult) -> bool:
    """Whether connections wait to be accepted although the CPU is not used up."""
    queue = cell.resources.listen_queue_peak if cell.resources is not None else None
    return bool(queue) and not _drops(cell)


def _accept_queue(cell: CellResult) -> bool:
    return _drops(cell) > 0


def _drops(cell: CellResult) -> int:
    return (cell.resources.listen_drops or 0) if cell.resources is not None else 0


def _cores(cell: CellResult) -> float | None:
    return cell.resources.cpu_cores_mean if cell.resources is not None else None


_LIMITS: dict[LimitedBy, Callable[[CellResult], bool]] = {
    "memory": _memory,
    "cpu_limit": _cpu_limit,
    "cpu_per_process": _one_core_per_process,
    "service": _service,
    "waiting": _waiting,
    "accept_queue": _accept_queue,
    "workers": _workers,
}
