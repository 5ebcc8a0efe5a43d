"""``run.json``: the plan of an experiment, its host, and how it ended; and the noise floor,
as stored in the cache."""

from __future__ import annotations

from typing import Literal

import msgspec

from wsgiload.documents.base import Document, NonNegativeInt, PositiveFloat, PositiveInt
from wsgiload.documents.load_report import Build, Rates, Verdict


class ProcessorFacts(Document, frozen=True, kw_only=True):
    """One CPU and its place in the topology."""

    cpu: NonNegativeInt
    """CPU number."""
    core: NonNegativeInt
    """Core of this CPU, identified by the lowest CPU number on the core."""
    cache: NonNegativeInt
    """Last-level cache of this CPU, identified by the lowest CPU number among the CPUs that
    share the cache."""
    node: NonNegativeInt
    """NUMA node of this CPU."""


class HostFacts(Document, frozen=True, kw_only=True):
    """The properties of the machine that can affect a result."""

    kernel: str | None = None
    """Kernel release. Source: uname. Null: not recorded."""
    os: str | None = None
    """Name of the operating system. Source: os-release. Null: no os-release file."""
    machine: str | None = None
    """CPU architecture. Source: uname. Null: not recorded."""
    cpu_model: str | None = None
    """Model of the CPU. Source: `/proc/cpuinfo`. Null: not listed."""
    cpus: NonNegativeInt | None = None
    """Number of CPUs of the machine. Source: kernel. Null: unknown."""
    available_cpus: tuple[NonNegativeInt, ...] = ()
    """CPUs that wsgiload may use. Unit: CPU numbers. Source: kernel."""
    topology: tuple[ProcessorFacts, ...] = ()
    """Cores, caches and NUMA nodes of the CPUs. Source: sysfs."""
    memory_bytes: NonNegativeInt | None = None
    """Memory of the machine. Unit: bytes. Source: `/proc/meminfo`. Null: not readable."""
    python: str | None = None
    """Version of the Python that ran wsgiload. Null: not recorded."""
    python_build: str | None = None
    """Build of the Python that ran wsgiload. Null: not recorded."""
    wsgiload: str | None = None
    """Version of wsgiload. Null: not recorded."""
    generator: Build | None = None
    """How the generator was built. Null: not recorded."""
    cpu_governor: str | None = None
    """CPU frequency governor. Source: sysfs. Null: not visible."""
    smt: str | None = None
    """Whether simultaneous multithreading is active: `1` (yes) or `0` (no). Source: sysfs. Null:
    not visible."""
    clocksource: str | None = None
    """Clock source of the kernel. Source: sysfs. Null: not visible."""
    tcp_congestion_control: str | None = None
    """TCP congestion control algorithm. Source: sysctl. Null: not visible."""
    somaxconn: str | None = None
    """Maximum listen backlog. Source: sysctl. Null: not visible."""
    port_range: str | None = None
    """Range of local ports. Source: sysctl. Null: not visible."""
    load_average: str | None = None
    """Load average before the first trial. Source: `/proc/loadavg`. Null: not visible."""
    timens_offsets: str | None = None
    """Clock offsets of this time namespace. Source: `/proc`. Null: not visible."""


class DoctorFinding(Document, frozen=True, kw_only=True):
    """A result of `wsgiload doctor`."""

    check: str
    """What `wsgiload doctor` checked."""
    level: Literal["green", "amber", "red"]
    """`green` (good), `amber` (may affect results) or `red` (affects results)."""
    value: float | str | bool | None
    """Measured value. Unit: depends on the check. Null: not readable."""
    message: str
    """The result in one sentence."""
    fix: str | None
    """How to fix the problem, often a command. Null: no problem, or no fix is known."""


class InitialClosedLoop(Document, frozen=True, kw_only=True):
    """A short closed loop that determined the rates of a sweep."""

    server: str
    """Name of the server."""
    rate_result: Rates | None
    """Rates over the closed loop ([Rates](#rates)). Unit: 1/s. Null: the closed loop failed."""


class RunInfo(Document, frozen=True, kw_only=True):
    """Everything about an experiment except the results. `host` and `doctor` describe the machine
    before the first trial in this directory; `--resume` replaces them."""

    schema_version: Literal[1]
    """Version of the document format: 1."""
    started_utc: str
    """Start time in UTC, ISO 8601."""
    status: Literal["complete", "interrupted", "failed"]
    """`complete`, `interrupted` (some trials are missing) or `failed`."""
    plan: msgspec.Raw
    """The plan, including default values. `--resume` continues with this plan. The keys of the plan
    match the options and may change between versions."""
    host: HostFacts
    """The machine on which wsgiload ran."""
    doctor: tuple[DoctorFinding, ...] = ()
    """Results of the checks of `wsgiload doctor` that only read files. Empty for a capacity search
    and for the closed loops in `closed_loops`."""
    closed_loops: tuple[InitialClosedLoop, ...] = ()
    """Short closed loops that determined the rates of a sweep without `--rates`. They have
    their own run directory, whose name contains `-rates-`; the list is empty in every other."""


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
