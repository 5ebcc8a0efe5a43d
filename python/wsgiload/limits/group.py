"""One control group: its directories in one or more hierarchies.

Shared by ``v1`` and ``v2``, which choose its files and set its limits.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from wsgiload.errors import LimitsError
from wsgiload.limits import sweep
from wsgiload.limits.files import CounterFiles, CounterSource, read_text
from wsgiload.limits.launch import launch, reap
from wsgiload.limits.model import Counters, Enforcement, Limits, Remains


@dataclass(frozen=True, slots=True)
class GroupFiles:
    """The directories of a group in the order of entry, and its counters."""

    directories: tuple[Path, ...]
    sources: tuple[CounterSource, ...]


class ControlGroup:
    """A new group for one server."""

    def __init__(
        self, name: str, files: GroupFiles, limits: Limits, enforcement: Enforcement
    ) -> None:
        self.name = name
        self.enforcement = enforcement
        self.escaped: dict[int, str] = {}
        self._files = files
        self._server_cpus = limits.server_cpus
        self._account = limits.account
        self._counters = CounterFiles(files.sources)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._last: Counters | None = None  # set once closed

    def spawn(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: IO[bytes]
    ) -> subprocess.Popen[bytes]:
        """Start a process that is in the group and pinned before its first instruction."""
        self._require_all()
        entries = [directory / "cgroup.procs" for directory in self._files.directories]
        process = launch(
            argv,
            env=env,
            cwd=cwd,
            log=log,
            entries=entries,
            server_cpus=self._server_cpus,
            account=self._account,
            mark=self.name,
        )
        self._processes.append(process)
        return process

    def pids(self) -> list[int]:
        """The living processes in the group, without zombies."""
        # Processes enter the first directory first, and reading one directory is cheaper than all.
        return sweep.members_of(self._files.directories[:1])

    def read_counters(self) -> Counters:
        """The current raw counters; after ``close``, the final ones."""
        return self._last or self._counters.read()

    def sources(self) -> tuple[CounterSource, ...]:
        """The files of its counters, for repeated reads."""
        return self._files.sources

    def oom_kills(self) -> int | None:
        """The number of OOM-killed processes in the group."""
        return self.read_counters().oom_kill

    def refused_processes(self) -> int | None:
        """How many processes and threads the limit on processes refused; None if not available."""
        for directory in self._files.directories:
            for line in (read_text(directory / "pids.events") or "").splitlines():
                name, _, count = line.partition(" ")
                if name == "max":
                    return int(count)
        return None

    def remains(self) -> Remains:
        """What a crash would leave behind."""
        return Remains(directories=self._files.directories, mark=self.name)

    def find_escaped(self) -> None:
        """Add processes that left the group to ``escaped``."""
        if self._processes:
            self.escaped |= sweep.escaped_from(self._files.directories, self.name)

    def kill(self) -> None:
        """Kill every process in the group, and those that left it. Raises LimitsError if any
        survives."""
        self.find_escaped()
        survivors = sweep.end_members(self._files.directories)
        if self._processes:
            survivors += sweep.end_marked(self.name)
        reap(self._processes)
        if survivors:
            raise LimitsError(
                f"processes {survivors} survived SIGKILL", "check their state with ps"
            )

    def _require_all(self) -> None:
        """Raise LimitsError if the group was removed, because its limits and counters are lost."""
        gone = [str(directory) for directory in self._files.directories if not directory.is_dir()]
        if gone:
            raise LimitsError(
                f"cgroup {', '.join(gone)} disappeared; another program manages cgroups on this "
                "host",
                "with systemd, start with systemd-run --scope -p Delegate=yes -- wsgiload …",
            )

    def close(self) -> None:
        """Kill, keep the final counters, remove the directories. Raises LimitsError if the group
        was removed before."""
        if self._last:
            return
        self.kill()
        self._last = self._counters.read()
        self._counters.close()
        try:
            self._require_all()
        finally:
            self._remove()

    def _remove(self) -> None:
        remaining = sweep.remove_directories(self._files.directories)
        if remaining:
            raise LimitsError(
                f"cannot remove {', '.join(map(str, remaining))}", "remove them with rmdir"
            )


def discard(directories: Sequence[Path]) -> None:
    """Remove the directories of an unfinished group."""
    for directory in directories:
        with suppress(OSError):
            sweep.remove_directory(directory)


def refuse_unmet(group: ControlGroup, limits: Limits, reasons: Mapping[str, str]) -> ControlGroup:
    """Return the group. Under the strict policy, if it does not enforce every limit, remove it and
    raise LimitsError."""
    missing = group.enforcement.not_enforced
    if limits.policy == "strict" and missing:
        group.close()
        why = "; ".join(
            f"{name}: {reasons.get(name) or _read_back(group, name)}" for name in missing
        )
        raise LimitsError(
            f"{group.enforcement.backend} cannot enforce the limit on {', '.join(missing)} ({why})",
            "change or omit that limit",
        )
    return group


def _read_back(group: ControlGroup, limit: str) -> str:
    keys = {"cpus": "effective_cpus", "memory": "effective_memory_bytes", "swap": "swap_bytes"}
    keys |= {"pids": "effective_pids", "server_cpus": "affinity"}
    return f"read back: {group.enforcement.read_back.get(keys.get(limit, limit))}"
