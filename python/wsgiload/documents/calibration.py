"""The noise floor of a machine, as ``wsgiload calibrate`` writes it and the cache keeps it."""

from __future__ import annotations

from typing import Literal

import msgspec

from wsgiload.documents.base import Document, NonNegativeInt, PositiveFloat, PositiveInt
from wsgiload.documents.load_report import Verdict


class MachineFacts(Document, frozen=True, kw_only=True):
    """The facts by which a floor belongs to a machine. Null where the machine does not say."""

    cpu_model: str | None
    """Model of the CPU. Source: `/proc/cpuinfo`. Null: not listed."""
    cpus: NonNegativeInt | None
    """Processors of the machine. Source: kernel. Null: not known."""
    kernel: str | None
    """Release of the kernel. Source: uname."""
    cpu_governor: str | None
    """Frequency governor. Source: sysfs. Null: not visible."""
    clocksource: str | None
    """Clock source of the kernel. Source: sysfs. Null: not visible."""
    wsgiload: str | None
    """Version of wsgiload."""


class FloorFigures(Document, frozen=True, kw_only=True):
    """One time distribution of a server that responds at once."""

    p50: NonNegativeInt | None
    """Median. Unit: ns. Source: load. Null: empty."""
    p99: NonNegativeInt | None
    """p99. Unit: ns. Source: load. Null: empty."""
    p99_9: NonNegativeInt | None = msgspec.field(name="p99.9")
    """p99.9. Unit: ns. Source: load. Null: empty."""
    max: NonNegativeInt | None
    """Largest. Unit: ns. Source: load. Null: empty."""


class Floor(Document, frozen=True, kw_only=True):
    """The times of a server that responds at once."""

    response_time_ns: FloorFigures | None
    """As in a load. Unit: ns. Null: nothing was measured."""
    send_lag_ns: FloorFigures | None
    """As in a load. Unit: ns. Null: nothing was measured."""
    receive_delay_ns: FloorFigures | None
    """As in a load. Unit: ns. Null: nothing was measured."""


class MedianBias(Document, frozen=True, kw_only=True):
    """How far the median was off where it was known."""

    hold_ns: NonNegativeInt
    """How long the server held every response. Unit: ns. Source: plan."""
    p50_ns: NonNegativeInt | None
    """Median that was measured. Unit: ns. Source: load. Null: no correct response."""
    bias_ns: int | None
    """How much later than the hold that is. Unit: ns. Source: derived. Null: no correct
    response."""
    is_within: bool
    """Whether that is as little as on a quiet machine, and not earlier than possible."""


class Calibration(Document, frozen=True, kw_only=True):
    """The noise floor of a machine in one connection mode."""

    schema_version: Literal[1]
    """Version of this document, 1."""
    created_ns: NonNegativeInt
    """When it was measured. Unit: ns since 1970. Source: kernel."""
    machine: MachineFacts
    """The machine it holds for."""
    rate_per_s: PositiveFloat
    """Offered rate. Unit: 1/s. Source: plan."""
    keepalive: Literal["on", "off"] | PositiveInt
    """`on`, `off`, or requests per connection. Source: plan."""
    threads: PositiveInt
    """Generator threads. Source: plan."""
    server_cpus: tuple[NonNegativeInt, ...]
    """Processors of the server. Source: plan."""
    client_cpus: tuple[NonNegativeInt, ...]
    """Processors of the generator. Source: plan."""
    floor: Floor
    """The times of the load whose responses were not held."""
    bias: tuple[MedianBias, ...]
    """One entry for each load whose responses were held."""
    verdict: Verdict
    """Whether the loads were disturbed. Send lag itself is the figure here, not a doubt about
    it."""
