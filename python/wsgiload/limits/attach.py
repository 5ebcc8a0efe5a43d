"""Reads the counters of a server that wsgiload did not start, such as a container, from its control
group or its processes.

Read-only: limits, moves or kills nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, Protocol

import psutil

from wsgiload.errors import UsageError
from wsgiload.limits import files, sweep, v1, v2
from wsgiload.limits.files import CounterFiles, CounterSource, Mount
from wsgiload.limits.model import Counters
from wsgiload.limits.unlimited import tree_counters

PROCESSES: Literal["processes"] = "processes"
AttachedSource = Literal["cgroup-v2", "cgroup-v1", "processes"]
EffectiveLimits = Mapping[str, float | None]
NO_LIMITS: EffectiveLimits = {
    "effective_cpus": None,
    "effective_memory_bytes": None,
    "effective_pids": None,
}


class Attached(Protocol):
    """A server that wsgiload did not start; ``source`` says where its counters come from."""

    source: AttachedSource
    name: str
    effective_limits: EffectiveLimits

    def pids(self) -> list[int]: ...

    def read_counters(self) -> Counters: ...

    def close(self) -> None: ...


class AttachedGroup:
    """An existing control group."""

    def __init__(
        self, name: str, directories: Mapping[str, Path], mounts: Mapping[str, Mount]
    ) -> None:
        self.name = name
        self._directories = tuple(dict.fromkeys(directories.values()))
        is_v2 = set(directories) == {v1.UNIFIED}
        self.source: AttachedSource = v2.NAME if is_v2 else v1.NAME
        if is_v2:
            directory = directories[v1.UNIFIED]
            self.effective_limits: EffectiveLimits = v2.effective_limits(
                directory, mounts[v1.UNIFIED].directory
            )
            self._sources = v2.counter_sources(directory)
        else:
            tops = {controller: mount.directory for controller, mount in mounts.items()}
            self.effective_limits = v1.effective_limits(directories, tops)
            self._sources = v1.counter_sources(directories)
        self._counters = CounterFiles(self._sources)

    def pids(self) -> list[int]:
        """The living processes in the group."""
        return sweep.members_of(self._directories)

    def read_counters(self) -> Counters:
        """The current raw counters; None if missing."""
        return self._counters.read()

    def sources(self) -> tuple[CounterSource, ...]:
        """The files of its counters, for repeated reads."""
        return self._sources

    def close(self) -> None:
        """Close the files."""
        self._counters.close()


class AttachedProcesses:
    """A process and its descendants, for when its control group contains wsgiload or has no
    counters."""

    source: AttachedSource = PROCESSES
    effective_limits = NO_LIMITS

    def __init__(self, process: psutil.Process) -> None:
        self.name = str(process.pid)
        self._process = process

    def pids(self) -> list[int]:
        """The living processes of the tree."""
        return [process.pid for process in self._living()]

    def read_counters(self) -> Counters:
        """CPU time and memory of the tree; shared pages count once per process."""
        return tree_counters(self._living())

    def close(self) -> None:
        """Nothing to close."""

    def _living(self) -> Sequence[psutil.Process]:
        with suppress(psutil.Error):
            if self._process.is_running():
                return [self._process, *self._process.children(recursive=True)]
        return []


def attach_cgroup(path: str, root: Path = Path("/")) -> AttachedGroup:
    """The group at ``path``: a directory of the cgroup file system, or a path as in
    ``/proc/PID/cgroup``."""
    mounts = _mounts(root)
    inside = _path_inside(path, mounts, root)
    directories = {name: files.under(mount.directory, inside) for name, mount in mounts.items()}
    present = _of_one_version(
        {name: directory for name, directory in directories.items() if directory.is_dir()}
    )
    usable = _excluding_self(present, mounts, root)
    if not present:
        raise UsageError(
            f"cgroup {path} does not exist",
            "take the path from /proc/PID/cgroup of one of the server's processes, or use "
            "--attach-pid PID",
        )
    if not usable:
        raise UsageError(
            f"cgroup {path} also contains this load generator, whose usage would count as the "
            "server's",
            "use --attach-pid PID, or start the server in its own cgroup",
        )
    return AttachedGroup(path, usable, mounts)


def attach_pid(pid: int, root: Path = Path("/")) -> Attached:
    """The control group of this process; if it also contains wsgiload, the process and its
    descendants."""
    memberships = files.memberships_of(pid, root)
    mounts = {name: mount for name, mount in _mounts(root).items() if name in memberships}
    directories = {
        name: files.own_directory(mount, memberships[name]) for name, mount in mounts.items()
    }
    directories = _of_one_version(
        {name: path for name, path in directories.items() if path.is_dir()}
    )
    usable = _excluding_self(directories, mounts, root)
    if usable:
        return AttachedGroup(memberships[next(iter(usable))], usable, mounts)
    try:
        return AttachedProcesses(psutil.Process(pid))
    except psutil.NoSuchProcess:
        raise UsageError(
            f"process {pid} does not exist", "use the PID of a running server"
        ) from None


def _mounts(root: Path) -> dict[str, Mount]:
    """The hierarchy of each controller; the unified one has the key ``""``."""
    mounts: dict[str, Mount] = {}
    for mount in files.find_mounts(root):
        names = (
            mount.controllers.intersection(v1.CONTROLLERS) if mount.version == 1 else {v1.UNIFIED}
        )
        for name in names:
            mounts.setdefault(name, mount)
    return mounts


def _path_inside(path: str, mounts: Mapping[str, Mount], root: Path) -> str:
    """The path of a group relative to the top of its hierarchy."""
    directory = files.under(root, path)
    for mount in mounts.values():
        if directory.is_relative_to(mount.directory):
            return "/" + str(directory.relative_to(mount.directory)).removeprefix(".")
    return path


def _of_one_version(directories: dict[str, Path]) -> dict[str, Path]:
    """The v2 directory if it has controllers; otherwise those of v1, including the unified one."""
    unified = directories.get(v1.UNIFIED)
    if unified is not None and (
        len(directories) == 1 or files.read_text(unified / "cgroup.controllers")
    ):
        return {v1.UNIFIED: unified}
    return directories


def _excluding_self(
    directories: dict[str, Path], mounts: Mapping[str, Mount], root: Path
) -> dict[str, Path]:
    """The groups that do not contain this process; empty if none of them counts CPU time or
    memory."""
    memberships = files.own_memberships(root)
    usable = {
        name: directory
        for name, directory in directories.items()
        if name not in memberships
        or not files.own_directory(mounts[name], memberships[name]).is_relative_to(directory)
    }
    return usable if usable.keys() & {"cpuacct", "memory", v1.UNIFIED} else {}
