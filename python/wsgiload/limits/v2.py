"""Limits with the unified hierarchy, cgroup v2.

Requires root or a group delegated to this user. A group that enables controllers for its children
must not contain processes, so wsgiload moves itself into a leaf if necessary, and back at the end.
"""

from __future__ import annotations

import atexit
import errno
import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from wsgiload.errors import LimitsError
from wsgiload.host.cpus import format_cpu_list
from wsgiload.limits import files
from wsgiload.limits.files import EVERY_PERIOD_NS, EVERY_SECOND_NS, CounterSource, Mount
from wsgiload.limits.group import ControlGroup, GroupFiles, discard, refuse_unmet
from wsgiload.limits.launch import pinned_to
from wsgiload.limits.model import Enforcement, Limits, ReadBackValue, new_group_name, unmet

NAME: Final = "cgroup-v2"
CONTROLLERS = ("cpu", "memory", "pids", "cpuset")
CONTROLLER_OF_LIMIT = {"cpus": "cpu", "memory": "memory", "pids": "pids"}
LEAF_NAME = re.compile(r"wsgiload-orchestrator-(?P<pid>[0-9]+)")


class V2Backend:
    """Creates groups below our group of the unified hierarchy."""

    name = NAME

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._mount = find_mount(root)
        self._base = own_base(root, self._mount) if self._mount else None

    def create(self, limits: Limits, label: str) -> ControlGroup:
        """Create the group, set its limits, read them back."""
        if self._mount is None or self._base is None:
            raise LimitsError("no cgroup v2 hierarchy is mounted", "run as root, or without limits")
        reasons = _delegate(self._base, self._root, limits)
        name = new_group_name(label)
        directory = self._base / name
        try:
            files.make_directory(directory)
        except OSError as error:
            raise _cannot("create a cgroup", directory, error) from error
        _write_limits(directory, limits, reasons)
        read_back = _read_back(directory, self._mount.directory, limits)
        missing = unmet(limits, read_back, files.swap_is_on(self._root))
        group_files = GroupFiles((directory,), counter_sources(directory))
        group = ControlGroup(name, group_files, limits, Enforcement(NAME, read_back, missing))
        return refuse_unmet(group, limits, reasons)


def find_mount(root: Path) -> Mount | None:
    """The unified hierarchy, with or without controllers."""
    return next((mount for mount in files.find_mounts(root) if mount.version == 2), None)


def own_base(root: Path, mount: Mount) -> Path:
    """The group in which to create groups: ours, or its parent if wsgiload moved itself to a
    leaf."""
    group = files.own_directory(mount, files.own_memberships(root).get("", "/"))
    return group.parent if LEAF_NAME.fullmatch(group.name) else group


def _delegate(base: Path, root: Path, limits: Limits) -> dict[str, str]:
    """Enable the controllers for groups below ``base``; returns why some limits cannot be
    enforced."""
    present = set((files.read_text(base / "cgroup.controllers") or "").split())
    enabled = set((files.read_text(base / "cgroup.subtree_control") or "").split())
    missing = [name for name in CONTROLLERS if name in present - enabled]
    try:
        if missing:
            _enable_controllers(base, root, missing)
    except OSError as error:
        if limits.policy == "strict" and limits.requested():
            raise _cannot("enable controllers", base, error) from error
        present = enabled
    return {
        limit: files.missing_controller(CONTROLLER_OF_LIMIT[limit], base)
        for limit in limits.requested()
        if CONTROLLER_OF_LIMIT[limit] not in present
    }


def _enable_controllers(base: Path, root: Path, controllers: Iterable[str]) -> None:
    line = " ".join(f"+{name}" for name in controllers)
    control = base / "cgroup.subtree_control"
    try:
        files.write_text(control, line)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        # only the root group may contain processes and enable controllers for its children
        leaf = _move_to_leaf(base, root)
        atexit.register(_move_back, base, leaf, os.getpid())
        files.write_text(control, line)


def _move_to_leaf(base: Path, root: Path) -> Path:
    """Move the processes of ``base`` into a leaf: all of them in a container, elsewhere only this
    process and its descendants."""
    leaf = base / f"wsgiload-orchestrator-{os.getpid()}"
    if not leaf.is_dir():
        files.make_directory(leaf)
    in_container = files.own_memberships(root).get("") == "/"
    inside = _members(base)
    for pid in inside if in_container else _family(os.getpid(), inside, root):
        with suppress(ProcessLookupError):
            files.write_text(leaf / "cgroup.procs", str(pid))
    return leaf


def _move_back(base: Path, leaf: Path, mover_pid: int) -> None:
    """Undo the move when wsgiload ends: first the controllers, then the processes, then the
    leaf."""
    if os.getpid() != mover_pid:
        return  # a forked child must not undo the move
    with suppress(OSError):
        enabled = (files.read_text(base / "cgroup.subtree_control") or "").split()
        files.write_text(base / "cgroup.subtree_control", " ".join(f"-{name}" for name in enabled))
        for pid in _members(leaf):
            with suppress(ProcessLookupError):
                files.write_text(base / "cgroup.procs", str(pid))
    discard([leaf])


def _members(directory: Path) -> list[int]:
    return [
        int(pid)
        for pid in (files.read_text(directory / "cgroup.procs") or "").split()
        if pid != "0"
    ]


def _family(ancestor: int, pids: Iterable[int], root: Path) -> list[int]:
    """The ancestor and its descendants among these processes."""
    return [pid for pid in pids if ancestor in _lineage(pid, root)]


def _lineage(pid: int, root: Path) -> Iterable[int]:
    while pid > 0:
        yield pid
        stat = files.read_text(files.under(root, f"/proc/{pid}/stat")) or ""
        fields = stat.rpartition(")")[2].split()
        pid = int(fields[1]) if len(fields) > 1 else 0


def _write_limits(directory: Path, limits: Limits, reasons: dict[str, str]) -> None:
    values: list[tuple[str, str, str]] = []
    quota_us = limits.quota_us(cpuset_holds=(directory / "cpuset.cpus").exists())
    if quota_us is not None:
        values.append(("cpus", "cpu.max", f"{quota_us} {limits.cpu_period_us}"))
    if limits.memory_bytes is not None:
        values.append(("memory", "memory.max", str(limits.memory_bytes)))
        values.append(("swap", "memory.swap.max", "0"))  # missing without swap accounting
    if limits.pids is not None:
        values.append(("pids", "pids.max", str(limits.pids)))
    if limits.server_cpus:
        values.append(("cpuset", "cpuset.cpus", format_cpu_list(limits.server_cpus)))
    # memory.oom.group stays 0: as in production, a prefork server loses only a worker
    for limit, name, value in values:
        try:
            files.write_text(directory / name, value)
        except OSError as error:
            reasons.setdefault(limit, f"{name}: {error.strerror}")


def _read_back(directory: Path, top: Path, limits: Limits) -> dict[str, ReadBackValue]:
    quota_us, period_us = _cpu_max(directory)
    cores = pinned_to(limits.server_cpus)
    above = effective_limits(directory, top)
    return {
        "cpu_quota_us": quota_us,
        "cpu_period_us": period_us,
        "memory_bytes": files.read_int(directory / "memory.max"),
        "swap_bytes": files.read_int(directory / "memory.swap.max"),
        "pids": files.read_int(directory / "pids.max"),
        "cpuset": files.read_text(directory / "cpuset.cpus.effective"),
        "affinity": format_cpu_list(cores),
        **above,
        "effective_cpus": files.minimum([above["effective_cpus"], float(len(cores))]),
    }


def effective_limits(directory: Path, top: Path) -> dict[str, float | None]:
    """The tightest limits of a group and all groups above it; None without a limit."""
    upwards = list(files.ancestors(directory, top))
    quotas = [_cpu_max(path) for path in upwards]
    return {
        "effective_cpus": files.minimum(
            [quota / period for quota, period in quotas if quota and period]
        ),
        "effective_memory_bytes": files.minimum(
            [files.read_int(path / "memory.max") for path in upwards]
        ),
        "effective_pids": files.minimum([files.read_int(path / "pids.max") for path in upwards]),
    }


def _cpu_max(directory: Path) -> tuple[int | None, int | None]:
    quota, _, period = (files.read_text(directory / "cpu.max") or "").partition(" ")
    return (int(quota) if quota.isdigit() else None, int(period) if period.isdigit() else None)


def counter_sources(directory: Path) -> tuple[CounterSource, ...]:
    """The sampled files of a group."""
    usage = {
        "usage_usec": "cpu_usage_ns",
        "user_usec": "cpu_user_ns",
        "system_usec": "cpu_system_ns",
    }
    microseconds = files.renamed({**usage, "throttled_usec": "throttled_ns"}, files.NS_PER_US)
    counts = files.renamed({"nr_periods": "nr_periods", "nr_throttled": "nr_throttled"})
    candidates: list[tuple[str, Callable[[str], Mapping[str, int]], int]] = [
        ("cpu.stat", lambda text: {**microseconds(text), **counts(text)}, 0),
        ("memory.current", files.single("memory_bytes"), EVERY_PERIOD_NS),
        ("memory.stat", _memory_use, EVERY_PERIOD_NS),
        (
            "memory.events",
            files.renamed({"oom_kill": "oom_kill", "high": "memory_high"}),
            EVERY_PERIOD_NS,
        ),
        ("pids.current", files.single("pids"), EVERY_PERIOD_NS),
        ("cpu.pressure", files.CPU_PRESSURE, 0),
        ("memory.pressure", files.MEMORY_PRESSURE, EVERY_PERIOD_NS),
        ("io.pressure", files.IO_PRESSURE, EVERY_SECOND_NS),
    ]
    return tuple(
        CounterSource(directory / name, parse, spacing_ns) for name, parse, spacing_ns in candidates
    )


_MEMORY_USE = files.renamed(
    {"anon": "memory_anon_bytes", "shmem": "memory_shared_bytes", "file": "memory_file_bytes"}
)
# The parts of ``kernel``, which Linux before 5.18 does not have.
_KERNEL_PARTS = ("slab", "kernel_stack", "pagetables", "percpu")


def _memory_use(text: str) -> dict[str, int]:
    """The memory by kind; ``kernel`` does not include the socket buffers."""
    values = files.flat_keys(text)
    parts = ("kernel",) if "kernel" in values else _KERNEL_PARTS
    kernel = [values[name] for name in (*parts, "sock") if name in values]
    return {**_MEMORY_USE(text), **({"memory_kernel_bytes": sum(kernel)} if kernel else {})}


def _cannot(action: str, directory: Path, error: OSError) -> LimitsError:
    return LimitsError(f"cannot {action} in {directory}: {error.strerror}", files.fix_of(error))
