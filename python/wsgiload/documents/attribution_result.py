"""Events that coincided with the slow requests of a cell."""

from __future__ import annotations

from typing import Literal

from wsgiload.documents.base import Document, NonNegativeFloat, NonNegativeInt, Share


class ShareInterval(Document, frozen=True, kw_only=True):
    """A share or a ratio, with its confidence interval."""

    value: NonNegativeFloat
    """The share or ratio. Unit: 0 to 1, or ratio."""
    low: NonNegativeFloat | None
    """Lower end of the 95 % confidence interval. Unit: 0 to 1, or ratio. Source: bootstrap over
    blocks of at least 1 s. Null: the measurement is shorter than 5 s, or `risk_ratio` is undefined
    in a bootstrap sample."""
    high: NonNegativeFloat | None
    """Upper end of the 95 % confidence interval. Unit: 0 to 1, or ratio. Source: bootstrap over
    blocks of at least 1 s. Null: the measurement is shorter than 5 s, or `risk_ratio` is undefined
    in a bootstrap sample."""


class ExposureResult(Document, frozen=True, kw_only=True):
    """How many of the slowest requests, and of all requests, overlapped one kind of event. A
    request overlaps an event if it was in the system during the event."""

    event: Literal["throttled", "cpu_wait", "paused", "memory_pressure"]
    """Kind of event: `throttled` (stopped by the CPU limit), `cpu_wait` (runnable, but waiting for
    a CPU), `paused` (no progress while connections waited, although CPUs were available) or
    `memory_pressure` (waiting for memory). [attribution.md](attribution.md#exposures) has the exact
    definitions."""
    slowest: ShareInterval
    """Share of the slowest requests that overlapped an event. Unit: 0 to 1. Source: samples,
    `flights`."""
    all: ShareInterval
    """Share of all requests that overlapped an event. Unit: 0 to 1. Source: samples, `flights`."""
    risk_ratio: ShareInterval | None
    """Probability that a request was among the slowest if it overlapped an event, divided by the
    probability if it overlapped no event. Unit: ratio. Source: `slowest` and `all`. Null: `slowest`
    is 1, or `all` is 0 or 1."""


class FingerprintResult(Document, frozen=True, kw_only=True):
    """A pattern in the resource samples that a fixed rule detected."""

    name: str
    """Name of the fingerprint."""
    sentence: str
    """The observation as a sentence."""
    rule: str
    """Condition under which the fingerprint is reported."""
    source: str
    """Counters from which the value was calculated."""
    value: float
    """Measured value. Unit: depends on the fingerprint. Source: as in `source`."""
    limit: float
    """Threshold for `value`. Unit: depends on the fingerprint."""


class AttributionResult(Document, frozen=True, kw_only=True):
    """Events that coincided with slow requests. The events are not necessarily the cause.
    [attribution.md](attribution.md) has the rules."""

    slowest: NonNegativeInt | None
    """Number of requests that count as the slowest: 1 % of all requests, but at least ten and at
    most 2,000. Unit: requests. Source: load. Null: the load has no `flights`."""
    slowest_ratio: Share | None
    """`slowest` divided by the number of all requests. Unit: 0 to 1. Source: load. Null: the load
    has no `flights`."""
    resolution_ns: NonNegativeInt
    """Time resolution of the events: one CPU period. Unit: ns. Source: cgroup."""
    exposures: tuple[ExposureResult, ...]
    """Exposure to each kind of event that occurred. Source: samples, `flights`."""
    fingerprints: tuple[FingerprintResult, ...]
    """All fingerprints that were detected. Source: samples."""
    worker_imbalance: NonNegativeFloat | None
    """Imbalance of CPU time between the workers: 0 if all workers use the same CPU time, 1 if a
    single worker uses all CPU time. Unit: 0 to 1. Source: processes.csv. Null: fewer than two
    workers, or they were observed for less than 0.5 s."""
    other_cpu_ratio: Share | None
    """Share of the machine's CPU time used by processes other than the server, its services, the
    generator and wsgiload. Unit: 0 to 1. Source: `/proc/stat` in ticks, cgroup, client.csv. Null:
    not readable."""
    cpu_wait_ratio: NonNegativeFloat | None
    """Share of the measurement in which all runnable tasks of the server waited for a CPU, without
    throttling or memory pressure. Unit: 0 to 1. Source: `cpu.pressure`. Null: no PSI (pressure
    stall information), or the server was throttled or waited for memory throughout the
    measurement."""
