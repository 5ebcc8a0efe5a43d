"""``run.json``: the plan of a run, the host it ran on, and how it ended."""

from __future__ import annotations

from typing import Literal

import msgspec

from wsgiload.documents.base import Document, NonNegativeInt
from wsgiload.documents.load_report import Build, Rates


class ProcessorFacts(Document, frozen=True, kw_only=True):
    """One CPU and its place in the topology."""

    cpu: NonNegativeInt
    """CPU number."""
    core: NonNegativeInt
    """Lowest CPU number of the same core."""
    cache: NonNegativeInt
    """Lowest CPU number with the same last-level cache."""
    node: NonNegativeInt
    """NUMA node."""


class HostFacts(Document, frozen=True, kw_only=True):
    """The machine: everything that can affect a result."""

    kernel: str | None = None
    """Kernel release. Source: uname."""
    os: str | None = None
    """Name of the operating system. Source: os-release. Null: no such file."""
    machine: str | None = None
    """Architecture. Source: uname."""
    cpu_model: str | None = None
    """Model of the CPU. Source: `/proc/cpuinfo`. Null: not listed."""
    cpus: NonNegativeInt | None = None
    """Number of CPUs of the machine. Source: kernel. Null: unknown."""
    available_cpus: tuple[NonNegativeInt, ...] = ()
    """CPUs that this process may use. Source: kernel."""
    topology: tuple[ProcessorFacts, ...] = ()
    """CPUs that share cores, caches and memory. Source: sysfs."""
    memory_bytes: NonNegativeInt | None = None
    """Memory of the machine. Unit: bytes. Source: `/proc/meminfo`. Null: not readable."""
    python: str | None = None
    """Version of the Python that ran wsgiload."""
    python_build: str | None = None
    """How that Python was built."""
    wsgiload: str | None = None
    """Version of wsgiload."""
    generator: Build | None = None
    """How the generator was built."""
    cpu_governor: str | None = None
    """CPU frequency governor. Source: sysfs. Null: not visible."""
    smt: str | None = None
    """Whether simultaneous multithreading is active. Source: sysfs. Null: not visible."""
    clocksource: str | None = None
    """Clock source of the kernel. Source: sysfs. Null: not visible."""
    tcp_congestion_control: str | None = None
    """TCP congestion control. Source: sysctl. Null: not visible."""
    somaxconn: str | None = None
    """Maximum listen backlog. Source: sysctl. Null: not visible."""
    port_range: str | None = None
    """Range of local ports. Source: sysctl. Null: not visible."""
    load_average: str | None = None
    """Load average when the file was written. Source: `/proc/loadavg`. Null: not visible."""
    timens_offsets: str | None = None
    """Clock offsets of this time namespace. Source: `/proc`. Null: not visible."""


class DoctorFinding(Document, frozen=True, kw_only=True):
    """A finding of `wsgiload doctor` before the run."""

    check: str
    """What was checked."""
    level: Literal["green", "amber", "red"]
    """`green`, `amber` or `red`."""
    value: float | str | bool | None
    """Measured value. Null: not readable."""
    message: str
    """The finding as text."""
    fix: str | None
    """The command that fixes it. Null: nothing to fix, or no command fixes it."""


class InitialClosedLoop(Document, frozen=True, kw_only=True):
    """A short closed loop that determined the rates of the measurement."""

    server: str
    """The server."""
    rate_result: Rates | None
    """Its rates. Null: it failed."""


class RunInfo(Document, frozen=True, kw_only=True):
    """Everything about a run except its results."""

    schema_version: Literal[2]
    """Version of this document, 2."""
    started_utc: str
    """Start time, ISO 8601."""
    status: Literal["complete", "interrupted", "failed"]
    """`complete`, `interrupted` (some cells are missing) or `failed`."""
    plan: msgspec.Raw
    """The fully resolved plan, which `--resume` continues. Its keys match the options and may
    change between versions."""
    host: HostFacts
    """The machine."""
    doctor: tuple[DoctorFinding, ...] = ()
    """Findings of `wsgiload doctor` before the run."""
    closed_loops: tuple[InitialClosedLoop, ...] = ()
    """Closed loops that determined the rates of the measurement; only if no rates were given."""
