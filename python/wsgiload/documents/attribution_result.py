"""What coincided with the slow requests of a cell, and the effect of lifting a limit."""

from __future__ import annotations

from typing import Literal

from wsgiload.documents.base import Document, NonNegativeFloat, NonNegativeInt, Share


class ShareInterval(Document, frozen=True, kw_only=True):
    """A share with its confidence interval."""

    value: NonNegativeFloat
    """The share, or the ratio."""
    low: NonNegativeFloat | None
    """Lower 95 % bound. Source: bootstrap over seconds of the measurement. Null: fewer than five
    seconds."""
    high: NonNegativeFloat | None
    """Upper 95 % bound. Source: the same. Null: fewer than five seconds."""


class ExposureResult(Document, frozen=True, kw_only=True):
    """How often slow requests overlapped an event, compared with all requests."""

    event: Literal["throttled", "cpu_wait", "paused", "memory_pressure"]
    """`throttled` (by the CPU limit), `cpu_wait` (runnable, but waiting for a CPU), `paused`
    (neither running nor runnable while connections waited) or `memory_pressure` (memory
    pressure)."""
    slowest: ShareInterval
    """Share of the slowest requests that were in the system during the event. Unit: 0 to 1. Source:
    samples, `flights`."""
    all: ShareInterval
    """Share of all requests that were in the system during the event. Unit: 0 to 1. Source:
    samples, `flights`."""
    risk_ratio: ShareInterval | None
    """Probability that a request that overlapped the event was among the slowest, divided by the
    same probability for the other requests. Unit: ratio. Source: the two above. Null: every
    request overlapped, or none did."""


class FingerprintResult(Document, frozen=True, kw_only=True):
    """A known pattern in the samples that indicates a cause."""

    name: str
    """Name of the pattern."""
    sentence: str
    """The observation as a sentence."""
    rule: str
    """Condition for reporting the pattern."""
    source: str
    """Source of the value."""
    value: float
    """Measured value. Unit: as in `rule`. Source: `source`."""
    limit: float
    """Threshold of the rule. Unit: as in `rule`."""


class AttributionResult(Document, frozen=True, kw_only=True):
    """Events that coincided with slow requests, which does not imply a cause;
    [attribution.md](attribution.md) has the rules."""

    slowest: NonNegativeInt | None
    """Number of requests that count as the slowest: 1 %, but at least ten. Unit: requests. Source:
    load. Null: the load has no `flights`."""
    slowest_ratio: Share | None
    """Their share of all requests. Unit: 0 to 1. Source: load. Null: as `slowest`."""
    resolution_ns: NonNegativeInt
    """Time resolution of the events: one CPU period. Unit: ns. Source: cgroup."""
    exposures: tuple[ExposureResult, ...]
    """How many requests overlapped each signal that occurred. Source: samples, `flights`."""
    fingerprints: tuple[FingerprintResult, ...]
    """The patterns that were detected. Source: samples."""
    worker_imbalance: NonNegativeFloat | None
    """0 if all workers use the same CPU time, 1 if one uses all of it. Unit: 0 to 1. Source:
    processes.csv. Null: fewer than two workers."""
    other_cpu_ratio: Share | None
    """Share of the machine's CPU time used neither by the server nor by the measurement. Unit: 0
    to 1. Source: `/proc/stat` in ticks, cgroup, client.csv. Null: not readable."""
    cpu_wait_ratio: NonNegativeFloat | None
    """Share of the time in which the whole cgroup waited for a CPU without throttling or memory
    pressure. Unit: 0 to 1. Source: `cpu.pressure`. Null: no PSI."""
