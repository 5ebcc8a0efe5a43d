"""The limits of a server, and the interface of the mechanisms that enforce them. Pure."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, Literal, Protocol

from wsgiload.account import Account
from wsgiload.errors import LimitsError
from wsgiload.host.cpus import format_cpu_list

MIN_QUOTA_US = 1_000  # the kernel refuses less
MIN_PERIOD_US = 1_000
MAX_PERIOD_US = 1_000_000
MIN_MEMORY_BYTES = 4 * 1024 * 1024  # with less, even the shell that joins the group is killed
UNLIMITED_MEMORY_BYTES = 1 << 60  # cgroup v1 writes "no limit" as a number near 2**63
PAGE_BYTES = 4096

Policy = Literal["strict", "best-effort", "none"]
ReadBackValue = int | float | str | None
BackendName = Literal["cgroup-v2", "cgroup-v1", "none"]
ReadBack = Mapping[str, ReadBackValue]


@dataclass(frozen=True, slots=True)
class Limits:
    """The resources that one server may use. Swap is always off if memory is limited."""

    cpus: float | None = None  # CPU time in cores
    memory_bytes: int | None = None
    pids: int | None = None
    server_cpus: tuple[int, ...] = ()  # cores the server may run on; () means no pinning
    account: Account | None = None  # the user as whom it runs; None: ours
    policy: Policy = "strict"
    cpu_period_us: int = 100_000

    def requested(self) -> tuple[str, ...]:
        """Names of the requested limits."""
        limits = {"cpus": self.cpus, "memory": self.memory_bytes, "pids": self.pids}
        return tuple(name for name, value in limits.items() if value is not None)

    def quota_us(self, *, cpuset_holds: bool) -> int | None:
        """The CFS quota to write; None if there is no CPU limit or the group's cpuset enforces it.

        An affinity mask is not a limit, because a process can change its own.
        """
        if self.cpus is None or (
            cpuset_holds and self.server_cpus and self.cpus >= len(self.server_cpus)
        ):
            return None
        return round(self.cpus * self.cpu_period_us)


@dataclass(frozen=True, slots=True)
class Enforcement:
    """The limits as read back from the kernel, and the requested limits that are not enforced."""

    backend: BackendName
    read_back: ReadBack
    not_enforced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Counters:
    """Raw counters at one time, named like the columns of resources.csv; None: unknown."""

    cpu_usage_ns: int | None = None
    cpu_user_ns: int | None = None
    cpu_system_ns: int | None = None
    nr_periods: int | None = None
    nr_throttled: int | None = None
    throttled_ns: int | None = None  # summed over cores: never a wall time
    memory_bytes: int | None = None
    memory_anon_bytes: int | None = None
    memory_file_bytes: int | None = None  # includes the shared memory
    oom_kill: int | None = None
    pids: int | None = None
    psi_cpu_some_ns: int | None = None
    psi_cpu_full_ns: int | None = None
    psi_memory_some_ns: int | None = None
    listen_queue: int | None = None
    listen_drops: int | None = None
    steal_ns: int | None = None
    psi_memory_full_ns: int | None = None
    psi_io_some_ns: int | None = None
    psi_io_full_ns: int | None = None
    memory_high: int | None = None
    run_queue_wait_ns: int | None = None  # summed over threads: at most once a second
    host_busy_ns: int | None = None  # all cores of the machine together
    memory_shared_bytes: int | None = None  # shared memory and tmpfs
    memory_kernel_bytes: int | None = None  # slab, stacks, page tables, socket buffers

    @property
    def unreclaimable_bytes(self) -> int | None:
        """The memory that a server cannot give back, so a memory limit must exceed it."""
        return unreclaimable_bytes(
            self.memory_anon_bytes, self.memory_shared_bytes, self.memory_kernel_bytes
        )

    @property
    def page_cache_bytes(self) -> int | None:
        """Cached files, which the kernel drops when the group needs the memory."""
        if self.memory_file_bytes is None or self.memory_shared_bytes is None:
            return None
        return max(0, self.memory_file_bytes - self.memory_shared_bytes)


def unreclaimable_bytes(anon: int | None, shared: int | None, kernel: int | None) -> int | None:
    """The sum of the known parts; None if the anonymous memory, the largest part, is unknown."""
    return None if anon is None else anon + (shared or 0) + (kernel or 0)


COUNTER_NAMES = tuple(field.name for field in fields(Counters))


@dataclass(frozen=True, slots=True)
class Remains:
    """What a crash would leave behind: group directories, sessions as (id, start time in ticks),
    and processes with ``mark`` in their environment variables."""

    directories: tuple[Path, ...] = ()
    sessions: tuple[tuple[int, int], ...] = ()
    mark: str | None = None


class LimitedGroup(Protocol):
    """A new group for one launch of one server."""

    name: str
    enforcement: Enforcement
    # Processes that left the group, by pid with their names.
    escaped: dict[int, str]

    def spawn(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: IO[bytes]
    ) -> subprocess.Popen[bytes]:
        """Start a process that is in the group before its first instruction."""
        ...

    def pids(self) -> list[int]: ...

    def read_counters(self) -> Counters: ...

    def oom_kills(self) -> int | None: ...
    def refused_processes(self) -> int | None: ...

    def remains(self) -> Remains: ...

    def find_escaped(self) -> None: ...

    def kill(self) -> None:
        """Kill every process in the group and wait, with a timeout, until none is left."""
        ...

    def close(self) -> None:
        """Kill and remove; may be called repeatedly."""
        ...


class Backend(Protocol):
    """A mechanism that enforces limits; creates groups."""

    name: str

    def create(self, limits: Limits, label: str) -> LimitedGroup: ...


def validate_limits(limits: Limits, available_cpus: Sequence[int]) -> None:
    """Raise LimitsError for limits that cannot be enforced on this machine."""
    _validate_cpus(limits, tuple(available_cpus))
    if limits.memory_bytes is not None and limits.memory_bytes < MIN_MEMORY_BYTES:
        raise LimitsError(
            f"--memory of {limits.memory_bytes} bytes is too small to start a server",
            "use --memory 4MiB or more (a Python server needs about 64MiB)",
        )
    if limits.pids is not None and limits.pids < 1:
        raise LimitsError(
            f"--pids {limits.pids} is too small to start a server", "use --pids 1 or more"
        )


def _validate_cpus(limits: Limits, available_cpus: tuple[int, ...]) -> None:
    if not MIN_PERIOD_US <= limits.cpu_period_us <= MAX_PERIOD_US:
        raise LimitsError(
            f"the kernel does not accept a CPU period of {limits.cpu_period_us} µs",
            f"choose between {MIN_PERIOD_US} and {MAX_PERIOD_US} µs",
        )
    unknown = sorted(set(limits.server_cpus) - set(available_cpus))
    if unknown:
        raise LimitsError(
            f"--server-cpus {format_cpu_list(unknown)}: only {format_cpu_list(available_cpus)} are "
            "available",
            f"choose --server-cpus from {format_cpu_list(available_cpus)}",
        )
    if limits.cpus is None:
        return
    if limits.cpus > len(available_cpus):
        count = len(available_cpus)
        raise LimitsError(
            f"{limits.cpus:g} CPUs requested, but this machine has {count}", f"use --cpus {count}"
        )
    if limits.server_cpus and limits.cpus > len(limits.server_cpus):
        raise LimitsError(
            f"{limits.cpus:g} CPUs requested, but the server is pinned to "
            f"{format_cpu_list(limits.server_cpus)}",
            "add cores to --server-cpus, or lower --cpus",
        )
    if not limits.cpus * limits.cpu_period_us >= MIN_QUOTA_US:
        minimum = MIN_QUOTA_US / limits.cpu_period_us
        raise LimitsError(
            f"{limits.cpus:g} CPUs requested, but the kernel's minimum is {minimum:g}",
            f"use --cpus {minimum:g}",
        )


def unmet(limits: Limits, read_back: ReadBack, swap_on: bool) -> tuple[str, ...]:
    """The names of requested limits that the values read back do not confirm.

    A limit is also unmet if an enclosing group has a tighter one, because the run would not match
    its label.
    """
    checks = {
        "cpus": limits.cpus is None or _close(read_back.get("effective_cpus"), limits.cpus, 0.001),
        "memory": limits.memory_bytes is None
        or _close(read_back.get("effective_memory_bytes"), limits.memory_bytes, PAGE_BYTES),
        "swap": limits.memory_bytes is None or not swap_on or read_back.get("swap_bytes") == 0,
        "pids": limits.pids is None or _close(read_back.get("effective_pids"), limits.pids, 1),
        "server_cpus": not limits.server_cpus
        or read_back.get("affinity") == format_cpu_list(limits.server_cpus),
    }
    return tuple(name for name, holds in checks.items() if not holds)


def _close(value: ReadBackValue, requested: float, tolerance: float) -> bool:
    return isinstance(value, int | float) and abs(value - requested) < tolerance


_GROUP_NAME = re.compile(r"wsgiload-(?P<pid>[0-9]+)-[0-9a-f]{8}-.+")


def new_group_name(label: str) -> str:
    """A unique name with our pid, so a later run can check whether its creator is still alive."""
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", label) or "group"
    return f"wsgiload-{os.getpid()}-{secrets.token_hex(4)}-{plain[:100]}"


def creator_pid(group_name: str) -> int | None:
    """The pid of the process that created this group; None for a foreign group."""
    match = _GROUP_NAME.fullmatch(group_name)
    return int(match["pid"]) if match else None
