"""Exposures and fingerprints: what coincided with the slow requests of one cell. Pure, from stored
data.

They state coincidences only. ``intervention`` states effects, because it lifts a limit in random
order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wsgiload.attribution import spans
from wsgiload.attribution.evidence import (
    Event,
    Evidence,
    Tail,
    balance_of,
    exposure,
    late_connects,
    stalls_of,
    tail_of,
)
from wsgiload.attribution.fingerprints import find_fingerprints, wait_ratio
from wsgiload.attribution.host_disturbance import HostCounters, host_counters
from wsgiload.attribution.spans import steps_of
from wsgiload.documents.attribution_result import AttributionResult, ExposureResult
from wsgiload.documents.load_report import LoadReport
from wsgiload.sampling.listen_queue import rejected_connections
from wsgiload.sampling.processes import ClientUsage, ProcessUsage
from wsgiload.sampling.sampler import Sample

Spans = Sequence[spans.Span]

__all__ = ["Measured", "attribute", "host_of"]


@dataclass(frozen=True, slots=True)
class Measured:
    """The stored data of one cell."""

    load: LoadReport | None
    samples: Sequence[Sample]
    processes: Sequence[ProcessUsage] = ()
    client: Sequence[ClientUsage] = ()
    cpus: int = 1
    backlog: int | None = None
    oom_kills: int | None = None
    shared_cores: bool = False
    period_us: int | None = None
    # The kernel's ListenDrops of all sockets over the whole load.
    kernel_listen_drops: int | None = None
    # Samples of supporting services, whose CPU time does not count as that of other processes.
    services: Sequence[Sequence[Sample]] = ()


def attribute(measured: Measured) -> AttributionResult | None:
    """Exposures and fingerprints of a cell; None if it was not sampled."""
    if len(measured.samples) < 2:
        return None

    window = window_of(measured)
    period_ns = (measured.period_us or 100_000) * 1_000
    inside = [
        sample for sample in measured.samples if window[0] - period_ns <= sample.t_ns <= window[1]
    ]
    evidence = Evidence(
        steps=steps_of(inside, period_ns),
        oom_kills=measured.oom_kills,
        listen_drops=rejected_connections(
            _growth(inside, "listen_drops"), measured.kernel_listen_drops
        ),
        backlog=measured.backlog,
        balance=balance_of(measured.processes, window),
        late_connects=late_connects(measured.load),
        stalls=stalls_of(measured.load),
        shared_cores=measured.shared_cores,
        period_ns=period_ns,
    )

    tail = tail_of(measured.load) if measured.load is not None else None
    return AttributionResult(
        exposures=tuple(_exposures(tail, evidence)) if tail is not None else (),
        fingerprints=tuple(find_fingerprints(evidence)),
        slowest=len(tail.slowest) if tail is not None else None,
        slowest_ratio=tail.slowest_share if tail is not None else None,
        worker_imbalance=None if evidence.balance is None else evidence.balance.imbalance,
        other_cpu_ratio=other_cpu_ratio(inside, measured.client, measured.cpus, measured.services),
        cpu_wait_ratio=wait_ratio(evidence),
        resolution_ns=period_ns,
    )


def host_of(measured: Measured) -> HostCounters:
    """The CPU counters of the host and of the measurement."""
    return host_counters(measured.samples, measured.client, measured.cpus, measured.services)


def window_of(measured: Measured) -> tuple[int, int]:
    """The measurement until its last listed request ends; without a report, the time of all
    samples."""
    if measured.load is None:
        return measured.samples[0].t_ns, measured.samples[-1].t_ns
    load = measured.load
    from_ns = load.clock.monotonic_ns + load.plan.phases.warmup_ns
    ends = [end_ns for _, end_ns in load.flights.slowest] if load.flights is not None else []
    return from_ns, max([from_ns + load.measured_ns, *ends])


def _exposures(tail: Tail, evidence: Evidence) -> list[ExposureResult]:
    steps, period_ns = evidence.steps, evidence.period_ns
    by_event: dict[Event, Spans] = {
        "throttled": spans.throttled(steps, period_ns),
        "cpu_wait": spans.cpu_wait(steps),
        "paused": spans.paused(steps),
        "memory_pressure": spans.memory_pressure(steps),
    }
    return [exposure(event, tail, periods) for event, periods in by_event.items() if periods]


def _growth(samples: Sequence[Sample], name: str) -> int | None:
    values = [value for sample in samples if (value := getattr(sample.counters, name)) is not None]
    return max(0, values[-1] - values[0]) if len(values) > 1 else None


def other_cpu_ratio(
    samples: Sequence[Sample],
    client: Sequence[ClientUsage],
    cpus: int,
    services: Sequence[Sequence[Sample]] = (),
) -> float | None:
    """The share of the machine's CPU time that other processes used: neither the server, nor its
    services, nor the generator. The kernel counts busy time in ticks."""
    known = [sample for sample in samples if sample.counters.host_busy_ns is not None]
    if len(known) < 2 or len(client) < 2:
        return None

    first, last = known[0], known[-1]
    length_ns = last.t_ns - first.t_ns
    busy = _between(first, last, "host_busy_ns")
    server = _between(first, last, "cpu_usage_ns")
    inside = [usage for usage in client if first.t_ns <= usage.t_ns <= last.t_ns]
    inside = inside if len(inside) > 1 else list(client)
    if busy is None or server is None or length_ns <= 0 or inside[-1].t_ns <= inside[0].t_ns:
        return None
    client_cores = (inside[-1].cpu_ns - inside[0].cpu_ns) / (inside[-1].t_ns - inside[0].t_ns)
    cores = client_cores + sum(_cores(one, first.t_ns, last.t_ns) for one in services)
    return min(1.0, max(0.0, ((busy - server) / length_ns - cores) / cpus))


def _cores(samples: Sequence[Sample], from_ns: int, to_ns: int) -> float:
    """The mean number of cores used between two timestamps; 0 if unknown."""
    inside = [one for one in samples if from_ns <= one.t_ns <= to_ns]
    if len(inside) < 2:
        return 0.0
    used_ns = _between(inside[0], inside[-1], "cpu_usage_ns") or 0
    return used_ns / (inside[-1].t_ns - inside[0].t_ns)


def _between(first: Sample, last: Sample, name: str) -> int | None:
    before, after = getattr(first.counters, name), getattr(last.counters, name)
    return None if before is None or after is None else int(after - before)
