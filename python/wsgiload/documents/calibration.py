"""The noise floor of a machine, as ``wsgiload calibrate`` writes it and the cache keeps it."""

from __future__ import annotations

from typing import Literal

import msgspec

from wsgiload.documents.base import Document, NonNegativeInt, PositiveFloat, PositiveInt
from wsgiload.documents.load_report import Verdict


class MachineFacts(Document, frozen=True, kw_only=True):
    """The properties of a machine that affect its noise floor."""

    cpu_model: str | None
    """Model of the CPU. Source: `/proc/cpuinfo`. Null: not listed."""
    cpus: NonNegativeInt | None
    """Number of CPUs of the machine. Source: kernel. Null: unknown."""
    kernel: str | None
    """Kernel release. Source: uname."""
    cpu_governor: str | None
    """CPU frequency governor. Source: sysfs. Null: not visible."""
    clocksource: str | None
    """Clock source of the kernel. Source: sysfs. Null: not visible."""
    wsgiload: str | None
    """Version of wsgiload."""


class NoiseFloorQuantiles(Document, frozen=True, kw_only=True):
    """One of the measured times, for a server that responds immediately."""

    p50: NonNegativeInt | None
    """Median. Unit: ns. Source: load. Null: empty."""
    p99: NonNegativeInt | None
    """p99. Unit: ns. Source: load. Null: empty."""
    p99_9: NonNegativeInt | None = msgspec.field(name="p99.9")
    """p99.9. Unit: ns. Source: load. Null: empty."""
    max: NonNegativeInt | None
    """Maximum. Unit: ns. Source: load. Null: empty."""


class MeasuredNoiseFloor(Document, frozen=True, kw_only=True):
    """The times measured with a server that responds immediately."""

    response_time_ns: NoiseFloorQuantiles | None
    """As in a load. Unit: ns. Null: nothing was measured."""
    send_lag_ns: NoiseFloorQuantiles | None
    """As in a load. Unit: ns. Null: nothing was measured."""
    receive_delay_ns: NoiseFloorQuantiles | None
    """As in a load. Unit: ns. Null: nothing was measured."""


class MedianBias(Document, frozen=True, kw_only=True):
    """The error of the median for a server with a known service time."""

    service_time_ns: NonNegativeInt
    """Service time: how long the server delayed each response. Unit: ns. Source: plan."""
    p50_ns: NonNegativeInt | None
    """Measured median. Unit: ns. Source: load. Null: no correct response."""
    bias_ns: int | None
    """Measured median minus the service time. Unit: ns. Source: derived. Null: no correct
    response."""
    is_within: bool
    """Whether the error is between 0 and 50 µs, as on a quiet machine."""


class Calibration(Document, frozen=True, kw_only=True):
    """The noise floor of a machine in one connection mode."""

    schema_version: Literal[1]
    """Version of this document, 1."""
    created_ns: NonNegativeInt
    """When it was measured. Unit: ns since 1970. Source: kernel."""
    machine: MachineFacts
    """The machine that was calibrated."""
    rate_per_s: PositiveFloat
    """Offered rate. Unit: 1/s. Source: plan."""
    keepalive: Literal["on", "off"] | PositiveInt
    """`on`, `off`, or requests per connection. Source: plan."""
    threads: PositiveInt
    """Generator threads. Source: plan."""
    server_cpus: tuple[NonNegativeInt, ...]
    """CPUs of the server. Source: plan."""
    client_cpus: tuple[NonNegativeInt, ...]
    """CPUs of the generator. Source: plan."""
    noise_floor: MeasuredNoiseFloor
    """The times of the load on a server that responds immediately."""
    bias: tuple[MedianBias, ...]
    """One entry for each load on a server that delays its responses."""
    verdict: Verdict
    """Whether the loads were disturbed. Send lag does not count as a disturbance here, because it
    is part of the noise floor."""
