"""Which cores the server gets and which ones the load generator gets.

Pure decisions about lists of core numbers; pinning itself happens where processes are started.
This module must not change the affinity of anything.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass

from wsgiload.errors import UsageError


@dataclass(frozen=True, slots=True)
class CpuPlan:
    """The cores of either side; ``shared_cores`` says that client and server compete for some."""

    server_cpus: tuple[int, ...]
    client_cpus: tuple[int, ...]
    shared_cores: bool


def available_cpus() -> tuple[int, ...]:
    """The cores this process may run on, which can be fewer than the machine has."""
    if not hasattr(os, "sched_getaffinity"):  # macOS
        return tuple(range(os.cpu_count() or 1))
    return tuple(sorted(os.sched_getaffinity(0)))


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """Read the kernel's list format, ``1,3-5``, as sorted distinct core numbers."""
    cores: set[int] = set()
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        first, dash, last = part.partition("-")
        if not _is_number(first) or (dash and not _is_number(last)):
            raise UsageError(f"'{part}' is not a core or a range of cores", "write cores like 1,3-5")
        low, high = int(first), int(last or first)
        if high < low:
            raise UsageError(f"the range of cores '{part}' runs backwards", f"write {high}-{low}")
        cores.update(range(low, high + 1))
    return tuple(sorted(cores))


def format_cpu_list(cores: Sequence[int]) -> str:
    """Write core numbers in the kernel's list format: ``(1, 3, 4, 5)`` becomes ``1,3-5``."""
    runs: list[list[int]] = []
    for core in sorted(set(cores)):
        if runs and core == runs[-1][1] + 1:
            runs[-1][1] = core
        else:
            runs.append([core, core])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def assign_cpus(
    available: Sequence[int],
    cpus: float | None,
    server: tuple[int, ...] | None,
    client: tuple[int, ...] | None,
) -> CpuPlan:
    """Divide the available cores; what the caller named for either side is taken as it is.

    The server is placed at the end of the list because interrupts and the rest of the system
    prefer the first cores. Where nothing is left for the client, both sides share.
    """
    cores = tuple(sorted(set(available)))
    if not cores:
        raise UsageError("no core is available", "check the CPU affinity wsgiload was started with")
    server_cpus = _known(server, cores, "server") or _default_server(cores, cpus, client or ())
    rest = tuple(core for core in cores if core not in server_cpus)
    client_cpus = _known(client, cores, "client") or rest or cores
    return CpuPlan(server_cpus, client_cpus, not set(server_cpus).isdisjoint(client_cpus))


def _default_server(cores: tuple[int, ...], cpus: float | None, client: tuple[int, ...]) -> tuple[int, ...]:
    free = tuple(core for core in cores if core not in client)
    wanted = max(1, len(cores) // 2) if cpus is None else math.ceil(cpus)
    if cpus is None:
        wanted = min(wanted, len(free) or wanted)
    return free[-wanted:] if wanted <= len(free) else cores[-wanted:]


def _known(asked: tuple[int, ...] | None, cores: tuple[int, ...], side: str) -> tuple[int, ...]:
    unknown = sorted(set(asked or ()) - set(cores))
    if unknown:
        raise UsageError(
            f"--{side}-cpus names {format_cpu_list(unknown)}, available are {format_cpu_list(cores)}",
            f"choose --{side}-cpus from {format_cpu_list(cores)}",
        )
    return tuple(sorted(set(asked or ())))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
