"""Limits with cgroup v1 hierarchies, and a parallel v2 group on hybrid hosts.

A v2 hierarchy without controllers still provides pressure (PSI) and a kill that no fork can escape.
Groups are created below our group, so outer limits remain in force.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from wsgiload.errors import LimitsError
from wsgiload.host.cpus import format_cpu_list
from wsgiload.limits import files
from wsgiload.limits.files import EVERY_PERIOD_NS, EVERY_SECOND_NS, CounterSource
from wsgiload.limits.group import ControlGroup, GroupFiles, discard, refuse_unmet
from wsgiload.limits.launch import pinned_to
from wsgiload.limits.model import (
    UNLIMITED_MEMORY_BYTES,
    Enforcement,
    Limits,
    ReadBackValue,
    new_group_name,
    unmet,
)

NAME: Final = "cgroup-v1"
CONTROLLERS = ("cpuset", "cpu", "cpuacct", "memory", "pids", "freezer")
UNIFIED = ""  # the key of the v2 hierarchy in /proc/self/cgroup


@dataclass(slots=True)
class _Draft:
    """An unfinished group: its directory by controller, and why limits could not be set."""

    directories: dict[str, Path] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def attempt(self, limit: str, controller: str, values: Mapping[str, int]) -> None:
        """Write a limit's files in order; an error is recorded, not raised."""
        directory = self.directories.get(controller)
        if directory is None:
            self.reasons.setdefault(limit, f"the {controller} controller cannot be used")
            return
        for name, value in values.items():
            try:
                files.write_text(directory / name, str(value))
            except OSError as error:
                self.reasons.setdefault(limit, f"{name}: {error.strerror}")
                return


class V1Backend:
    """Creates groups in every relevant v1 hierarchy."""

    name = NAME

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._mounts = find_own(root)

    def create(self, limits: Limits, label: str) -> ControlGroup:
        """Create the group, set its limits, read them back."""
        name = new_group_name(label)
        draft = self._make_directories(name, limits)
        _write_limits(draft, limits)
        read_back = self._read_back(draft, limits)
        missing = unmet(limits, read_back, files.swap_is_on(self._root))
        group_files = GroupFiles(
            tuple(dict.fromkeys(draft.directories.values())),
            counter_sources(draft.directories),
        )
        group = ControlGroup(name, group_files, limits, Enforcement(NAME, read_back, missing))
        return refuse_unmet(group, limits, draft.reasons)

    def _make_directories(self, name: str, limits: Limits) -> _Draft:
        draft = _Draft()
        created: set[Path] = set()
        error: OSError | None = None
        for controller, (parent, _) in self._mounts.items():
            directory = parent / name
            try:
                if directory not in created:
                    files.make_directory(directory)
                    created.add(directory)
                if controller == "cpuset":
                    _open_cpuset(directory, limits)
            except OSError as failure:
                error = failure
                continue
            draft.directories[controller] = directory
        discard([path for path in created if path not in draft.directories.values()])
        if not set(draft.directories) & set(CONTROLLERS):
            reason = error.strerror if error else "no v1 hierarchy is mounted"
            fix = files.fix_of(error) if error else "run as root, or without limits"
            discard(list(draft.directories.values()))
            raise LimitsError(f"cannot create a cgroup (v1): {reason}", fix)
        return draft

    def _read_back(self, draft: _Draft, limits: Limits) -> dict[str, ReadBackValue]:
        cpu, memory = draft.directories.get("cpu"), draft.directories.get("memory")
        memory_bytes = _memory_limit(memory)
        swap_total = files.read_int(memory / "memory.memsw.limit_in_bytes") if memory else None
        both_known = memory_bytes is not None and swap_total is not None
        cores = pinned_to(limits.server_cpus)
        tops = {name: top for name, (_, top) in self._mounts.items()}
        above = effective_limits(draft.directories, tops)
        return {
            "cpu_quota_us": files.read_int(cpu / "cpu.cfs_quota_us") if cpu else None,
            "cpu_period_us": files.read_int(cpu / "cpu.cfs_period_us") if cpu else None,
            "memory_bytes": memory_bytes,
            "swap_bytes": (swap_total or 0) - (memory_bytes or 0) if both_known else None,
            "pids": _number_of(draft.directories, "pids", "pids.max"),
            "cpuset": _text_of(draft.directories, "cpuset", "cpuset.cpus"),
            "affinity": format_cpu_list(cores),
            **above,
            "effective_cpus": files.minimum([above["effective_cpus"], float(len(cores))]),
        }


def find_own(root: Path) -> dict[str, tuple[Path, Path]]:
    """By controller: our group, and the top of the visible hierarchy. The v2 hierarchy has the key
    ``""``."""
    memberships = files.own_memberships(root)
    groups: dict[str, tuple[Path, Path]] = {}
    for mount in files.find_mounts(root):
        present = mount.controllers.intersection(CONTROLLERS) if mount.version == 1 else (UNIFIED,)
        for name in present:
            if name in memberships:
                groups.setdefault(
                    name, (files.own_directory(mount, memberships[name]), mount.directory)
                )
    return groups


def effective_limits(
    directories: Mapping[str, Path], tops: Mapping[str, Path]
) -> dict[str, float | None]:
    """The tightest limits of a group and all groups above it, up to the top of each hierarchy; None
    without a limit."""

    def upwards(controller: str) -> list[Path]:
        directory = directories.get(controller)
        return [] if directory is None else list(files.ancestors(directory, tops[controller]))

    return {
        "effective_cpus": files.minimum([*map(_cpu_limit, upwards("cpu"))]),
        "effective_memory_bytes": files.minimum([*map(_memory_limit, upwards("memory"))]),
        "effective_pids": files.minimum([*map(_pids_limit, upwards("pids"))]),
    }


def _open_cpuset(directory: Path, limits: Limits) -> None:
    """Set the values of a new cpuset; processes can only join once both are set."""
    parent = directory.parent
    for name in ("cpuset.mems", "cpuset.cpus"):
        inherited = files.read_text(parent / name) or ""
        pinned = format_cpu_list(limits.server_cpus) if name == "cpuset.cpus" else ""
        files.write_text(directory / name, pinned or inherited)


def _write_limits(draft: _Draft, limits: Limits) -> None:
    quota_us = limits.quota_us(cpuset_holds="cpuset" in draft.directories)
    if quota_us is not None:
        values = {"cpu.cfs_period_us": limits.cpu_period_us, "cpu.cfs_quota_us": quota_us}
        draft.attempt("cpus", "cpu", values)
    if limits.memory_bytes is not None:
        draft.attempt("memory", "memory", {"memory.limit_in_bytes": limits.memory_bytes})
        # written second, because it must not be below the memory limit; missing without swap
        # accounting
        draft.attempt("swap", "memory", {"memory.memsw.limit_in_bytes": limits.memory_bytes})
    if limits.pids is not None:
        draft.attempt("pids", "pids", {"pids.max": limits.pids})


def _cpu_limit(directory: Path) -> float | None:
    quota_us = files.read_int(directory / "cpu.cfs_quota_us")
    period_us = files.read_int(directory / "cpu.cfs_period_us")
    return quota_us / period_us if quota_us and period_us and quota_us > 0 else None


def _memory_limit(directory: Path | None) -> int | None:
    limit = files.read_int(directory / "memory.limit_in_bytes") if directory else None
    return None if limit is None or limit >= UNLIMITED_MEMORY_BYTES else limit


def _pids_limit(directory: Path) -> int | None:
    return files.read_int(directory / "pids.max")


def _file_of(directories: Mapping[str, Path], controller: str, name: str) -> Path | None:
    return directories[controller] / name if controller in directories else None


def _number_of(directories: Mapping[str, Path], controller: str, name: str) -> int | None:
    path = _file_of(directories, controller, name)
    return files.read_int(path) if path else None


def _text_of(directories: Mapping[str, Path], controller: str, name: str) -> str | None:
    path = _file_of(directories, controller, name)
    return files.read_text(path) if path else None


def counter_sources(directories: Mapping[str, Path]) -> tuple[CounterSource, ...]:
    """The sampled files of a group."""
    periods = {
        "nr_periods": "nr_periods",
        "nr_throttled": "nr_throttled",
        "throttled_time": "throttled_ns",
    }
    memory = {
        "total_rss": "memory_anon_bytes",
        "total_shmem": "memory_shared_bytes",
        "total_cache": "memory_file_bytes",
    }
    candidates: list[tuple[str, str, Callable[[str], Mapping[str, int]], int]] = [
        ("cpuacct", "cpuacct.usage", files.single("cpu_usage_ns"), 0),
        ("cpuacct", "cpuacct.usage_user", files.single("cpu_user_ns"), EVERY_SECOND_NS),
        ("cpuacct", "cpuacct.usage_sys", files.single("cpu_system_ns"), EVERY_SECOND_NS),
        ("cpu", "cpu.stat", files.renamed(periods), 0),
        ("memory", "memory.usage_in_bytes", files.single("memory_bytes"), EVERY_PERIOD_NS),
        ("memory", "memory.stat", files.renamed(memory), EVERY_PERIOD_NS),
        (
            "memory",
            "memory.kmem.usage_in_bytes",
            files.single("memory_kernel_bytes"),
            EVERY_PERIOD_NS,
        ),
        ("memory", "memory.oom_control", files.renamed({"oom_kill": "oom_kill"}), EVERY_SECOND_NS),
        ("pids", "pids.current", files.single("pids"), EVERY_PERIOD_NS),
        (UNIFIED, "cpu.pressure", files.CPU_PRESSURE, 0),
        (UNIFIED, "memory.pressure", files.MEMORY_PRESSURE, EVERY_PERIOD_NS),
        (UNIFIED, "io.pressure", files.IO_PRESSURE, EVERY_SECOND_NS),
    ]
    return tuple(
        CounterSource(directories[controller] / name, parse, spacing_ns)
        for controller, name, parse, spacing_ns in candidates
        if controller in directories
    )
