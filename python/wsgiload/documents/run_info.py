"""``run.json``: the plan of a run, the host it ran on, and how it ended."""

from __future__ import annotations

from typing import Literal

import msgspec

from wsgiload.documents.base import Document, NonNegativeInt
from wsgiload.documents.load_report import Build, Rates


class ProcessorFacts(Document, frozen=True, kw_only=True):
    """One processor, and what it shares with others."""

    cpu: NonNegativeInt
    """Its number."""
    core: NonNegativeInt
    """The lowest processor of the same core."""
    cache: NonNegativeInt
    """The lowest processor with the same last-level cache."""
    node: NonNegativeInt
    """Its memory node."""


class HostFacts(Document, frozen=True, kw_only=True):
    """The machine, as far as a result depends on it. Null: not known."""

    kernel: str | None = None
    """Release of the kernel. Source: uname."""
    os: str | None = None
    """Name of the operating system. Source: os-release. Null: no such file."""
    machine: str | None = None
    """Architecture. Source: uname."""
    cpu_model: str | None = None
    """Model of the CPU. Source: `/proc/cpuinfo`. Null: not listed."""
    cpus: NonNegativeInt | None = None
    """Processors of the machine. Source: kernel. Null: not known."""
    available_cpus: tuple[NonNegativeInt, ...] = ()
    """Processors that this process may use. Source: kernel."""
    topology: tuple[ProcessorFacts, ...] = ()
    """Which processors share cores, caches and memory. Source: sysfs."""
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
    """Frequency governor. Source: sysfs. Null: not visible."""
    smt: str | None = None
    """Whether simultaneous multithreading is active. Source: sysfs. Null: not visible."""
    clocksource: str | None = None
    """Clock source of the kernel. Source: sysfs. Null: not visible."""
    tcp_congestion_control: str | None = None
    """Congestion control of TCP. Source: sysctl. Null: not visible."""
    somaxconn: str | None = None
    """Longest listen backlog. Source: sysctl. Null: not visible."""
    port_range: str | None = None
    """Local ports. Source: sysctl. Null: not visible."""
    load_average: str | None = None
    """Load average at the time of writing. Source: `/proc/loadavg`. Null: not visible."""
    timens_offsets: str | None = None
    """Offsets of the clocks in this time namespace. Source: `/proc`. Null: not visible."""


class DoctorFinding(Document, frozen=True, kw_only=True):
    """What `wsgiload doctor` found before the run."""

    check: str
    """What was looked at."""
    level: Literal["green", "amber", "red"]
    """`green`, `amber` or `red`."""
    value: float | str | bool | None
    """What was found. Null: not readable."""
    message: str
    """The finding in words."""
    fix: str | None
    """The command that fixes it. Null: nothing to fix, or no command does."""


class ClosedLoopLook(Document, frozen=True, kw_only=True):
    """A short closed loop that looked for the rates worth measuring."""

    server: str
    """The server."""
    rate_result: Rates | None
    """What it served. Null: it failed."""


class RunInfo(Document, frozen=True, kw_only=True):
    """What a run was, apart from its results."""

    schema_version: Literal[2]
    """Version of this document, 2."""
    started_utc: str
    """When it began, ISO 8601."""
    status: Literal["complete", "interrupted", "failed"]
    """`complete`, `interrupted` (some cells are missing) or `failed`."""
    plan: msgspec.Raw
    """The plan with everything resolved: what `--resume` continues. Its keys are those of the
    options, and may change between versions."""
    host: HostFacts
    """The machine."""
    doctor: tuple[DoctorFinding, ...] = ()
    """What would disturb a measurement on it, as found before the run."""
    closed_loops: tuple[ClosedLoopLook, ...] = ()
    """The looks for rates worth measuring; only where no rate was given."""
