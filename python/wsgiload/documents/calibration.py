"""The noise floor of a machine, as written by ``wsgiload calibrate`` and stored in the cache."""

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
    """Quantiles of a duration, such as the response time, measured with a server that responds
    immediately."""

    p50: NonNegativeInt | None
    """Median. Unit: ns. Source: load. Null: there are no values."""
    p99: NonNegativeInt | None
    """p99. Unit: ns. Source: load. Null: there are no values."""
    p99_9: NonNegativeInt | None = msgspec.field(name="p99.9")
    """p99.9. Unit: ns. Source: load. Null: there are no values."""
    max: NonNegativeInt | None
    """Maximum. Unit: ns. Source: load. Null: there are no values."""


class MeasuredNoiseFloor(Document, frozen=True, kw_only=True):
    """The noise floor: times measured with a server that responds immediately."""

    response_time_ns: NoiseFloorQuantiles | None
    """Response time. Unit: ns. Null: nothing was measured."""
    send_lag_ns: NoiseFloorQuantiles | None
    """Send lag. Unit: ns. Null: nothing was measured."""
    receive_delay_ns: NoiseFloorQuantiles | None
    """Delay from the arrival of the last byte in the kernel until the generator read it. Unit: ns.
    Null: no kernel timestamps."""


class MedianBias(Document, frozen=True, kw_only=True):
    """The error of the measured median, for a server that delays each response by a known time."""

    service_time_ns: NonNegativeInt
    """Time by which the server delayed each response. Unit: ns. Source: plan."""
    p50_ns: NonNegativeInt | None
    """Measured median response time. Unit: ns. Source: load. Null: no correct response."""
    bias_ns: int | None
    """Measured median minus `service_time_ns`. Unit: ns. Source: derived. Null: no correct
    response."""
    is_within: bool
    """Whether `bias_ns` is between 0 and 50 µs, as expected on a quiet machine."""


class Calibration(Document, frozen=True, kw_only=True):
    """The noise floor of a machine with one `keepalive` setting."""

    schema_version: Literal[1]
    """Version of the document format: 1."""
    created_ns: NonNegativeInt
    """Time of the calibration. Unit: ns since 1970. Source: kernel."""
    machine: MachineFacts
    """The machine that was calibrated."""
    rate_per_s: PositiveFloat
    """Offered rate of the loads. Unit: 1/s. Source: plan."""
    keepalive: Literal["on", "off"] | PositiveInt
    """Connection reuse: `on`, `off`, or a maximum number of requests per connection. Source:
    plan."""
    threads: PositiveInt
    """Number of generator threads. Unit: threads. Source: plan."""
    server_cpus: tuple[NonNegativeInt, ...]
    """CPUs to which the server was pinned. Unit: CPU numbers. Source: plan."""
    client_cpus: tuple[NonNegativeInt, ...]
    """CPUs to which the generator was pinned. Unit: CPU numbers. Source: plan."""
    noise_floor: MeasuredNoiseFloor
    """The measured noise floor."""
    bias: tuple[MedianBias, ...]
    """Error of the measured median for each load on a server that delays its responses."""
    verdict: Verdict
    """Whether the loads were disturbed. Send lag does not count as a disturbance, because send lag
    is part of the noise floor."""
