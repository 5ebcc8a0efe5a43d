"""Detects servers that wait for a supporting service, such as a database. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from wsgiload.documents.cell_result import ServiceUse
from wsgiload.findings.finding import Finding, Fired, percent

# Even if there is always work, 10 % of a core's time is lost between requests.
BUSY_SHARE = 0.9
# A process that leaves half of its CPU time unused waits for something.
IDLE_SHARE = 0.5
BUSY_SERVICE = Finding(
    name="busy-service",
    examines="the CPU use of supporting services ([services.NAME]) and of the server",
    premise=f"A service used {percent(BUSY_SHARE)} of its cores or waited for a CPU for "
    f"{percent(BUSY_SHARE)} of the time, while the server had CPU time left. On shared cores: both "
    f"together used {percent(BUSY_SHARE)}, and the service more than the server. The service is "
    "the bottleneck.",
    fix="give the service more cores, or reduce its load: fewer queries, an index, a cache",
    misleads="the maximum throughput of a database, presented as that of a server",
)


def bottleneck_of(
    services: Sequence[ServiceUse], server_cores: float | None, server_limit: float | None
) -> ServiceUse | None:
    """A service that has used up its cores, or waits for one, while the server has not used up its
    limit, so the server waits for the service. If both share cores, the larger user is to blame."""
    if server_limit and server_cores is not None and server_cores >= BUSY_SHARE * server_limit:
        return None
    shares = {one.name: _busy(one, server_cores) for one in services}
    busiest = max(services, key=lambda one: shares[one.name], default=None)
    return None if busiest is None or shares[busiest.name] < BUSY_SHARE else busiest


def are_all_idle(
    services: Sequence[ServiceUse], server_cores: float | None, server_limit: float | None
) -> bool:
    """Whether the server and every service are known to use less than half of their CPU time."""
    if not services or server_cores is None or not server_limit:
        return False
    return server_cores < IDLE_SHARE * server_limit and all(map(_is_idle, services))


def _is_idle(service: ServiceUse) -> bool:
    used = service.resources
    if used.cpu_cores_mean is None or not service.cpus:
        return False
    is_short = (used.psi_cpu_some_ratio or 0.0) >= IDLE_SHARE
    return used.cpu_cores_mean < IDLE_SHARE * service.cpus and not is_short


def busy_service(
    services: Sequence[ServiceUse], server_cores: float | None, server_limit: float | None
) -> Fired | None:
    """The service that the server waits for."""
    busiest = bottleneck_of(services, server_cores, server_limit)
    if busiest is None:
        return None
    fix = f"give {busiest.name} more cores, or reduce its load: fewer queries, an index, a cache"
    busy = _busy(busiest, server_cores)
    return BUSY_SERVICE.fired(_sentence(busiest, server_cores), busy, BUSY_SHARE, fix=fix)


def _busy(service: ServiceUse, server_cores: float | None) -> float:
    """The utilization of the service's cores (including the server's use if they share cores), or
    the share of the time in which it waited for a core, whichever is larger. 0 if unknown, or if
    the server is the larger user."""
    cores, waited = service.resources.cpu_cores_mean, service.resources.psi_cpu_some_ratio or 0.0
    if cores is None or not service.cpus:
        return 0.0
    if not service.shares_server_cores:
        return max(cores / service.cpus, waited)
    server = server_cores or 0.0
    return max((cores + server) / service.cpus, waited) if cores > server else 0.0


def _sentence(service: ServiceUse, server_cores: float | None) -> str:
    cores, server = service.resources.cpu_cores_mean or 0.0, server_cores or 0.0
    cpus, ending = service.cpus or 0.0, f"{service.name} is the bottleneck"
    used = f"{service.name} used {cores:.2f} cores and the server {server:.2f}"
    if cores + (server if service.shares_server_cores else 0.0) < BUSY_SHARE * cpus:
        waited = (service.resources.psi_cpu_some_ratio or 0.0) * 100
        return f"{used}, but {service.name} waited for a CPU {waited:.0f} % of the time; {ending}"
    if service.shares_server_cores:
        shared = "1 core" if cpus == 1 else f"{cpus:g} cores"
        return f"{used} (they share {shared}); {ending}"
    return (
        f"{service.name} used {cores:.2f} of its {cpus:g} CPU core{'' if cpus == 1 else 's'} and "
        f"the server only {server:.2f}; {ending}"
    )


def bottleneck_and_fix(
    services: Sequence[ServiceUse], server_cores: float | None, server_limit: float | None
) -> tuple[str, str]:
    """The bottleneck of an idle server that falls behind, as far as known, and the fix."""
    if not services:
        bottleneck = "threads, connections or a backend are the bottleneck"
        return bottleneck, "add workers or threads, not CPU"
    busy = busy_service(services, server_cores, server_limit)
    if busy is not None:
        return "a service that has no CPU time left is the bottleneck", busy.fix or ""
    used = ", ".join(
        f"{one.name} used {one.resources.cpu_cores_mean:.2f} of {one.cpus:g} cores"
        for one in services
        if one.resources.cpu_cores_mean is not None and one.cpus is not None
    )
    bottleneck = "threads or the connection pool are the bottleneck" + (
        f" ({used})" if used else ""
    )
    return bottleneck, "add workers or threads, or enlarge the connection pool"
