"""Runs a server without a control group: only pins it and tracks its process tree.

No requested limit is enforced, and this is reported. An address-space limit is no substitute for a
memory limit, because allocations would fail instead of the server being killed, so none is set.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

import psutil

from wsgiload.errors import LimitsError
from wsgiload.host.cpus import format_cpu_list
from wsgiload.limits import sweep
from wsgiload.limits.files import read_text
from wsgiload.limits.launch import CAN_PIN, launch, pinned_to, reap
from wsgiload.limits.model import Counters, Enforcement, Limits, ReadBack, Remains, new_group_name

NAME: Final = "none"
NS_PER_S = 1_000_000_000
PR_SET_CHILD_SUBREAPER = 36


class UnlimitedBackend:
    """Starts servers without limits."""

    name = NAME

    def create(self, limits: Limits, label: str) -> UnlimitedGroup:
        """Create a group that records the limits that are not enforced. Raises LimitsError for any
        under the strict policy."""
        requested = () if limits.policy == "none" else limits.requested()
        if requested and limits.policy == "strict":
            raise LimitsError(
                f"the limit on {', '.join(requested)} cannot be enforced without cgroups",
                "run as root or in a delegated cgroup, or use --limits best-effort",
            )
        return UnlimitedGroup(new_group_name(label), limits, requested)


class UnlimitedGroup:
    """The processes started here, and their descendants.

    Each process inherits a variable with the group's name and, on Linux, a limit that identifies
    the group. On Linux, a daemon whose parents exit becomes our child, because we are a subreaper.
    """

    def __init__(self, name: str, limits: Limits, not_enforced: tuple[str, ...]) -> None:
        cores = pinned_to(limits.server_cpus)
        affinity = format_cpu_list(cores) if CAN_PIN else None
        read_back: ReadBack = {"affinity": affinity, "effective_cpus": float(len(cores))}
        self.name = name
        unpinned = ("server_cpus",) if limits.server_cpus and not CAN_PIN else ()
        self.escaped: dict[int, str] = {}  # stays empty: there is nothing to leave
        self.enforcement = Enforcement(NAME, read_back, not_enforced + unpinned)
        self._server_cpus = limits.server_cpus
        self._account = limits.account
        self._processes: list[subprocess.Popen[bytes]] = []
        self._sessions: list[tuple[int, int]] = []
        self._seen: dict[int, psutil.Process] = {}
        self._lock = threading.Lock()  # samplers and the caller look for processes at the same time
        self._last: Counters | None = None  # set once closed

    def spawn(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: IO[bytes]
    ) -> subprocess.Popen[bytes]:
        """Start a pinned process in a new session."""
        _become_subreaper()
        process = launch(
            argv,
            env=env,
            cwd=cwd,
            log=log,
            server_cpus=self._server_cpus,
            account=self._account,
            mark=self.name,
        )
        self._processes.append(process)
        with suppress(psutil.Error):
            self._seen[process.pid] = psutil.Process(process.pid)
        stat = sweep.process_stat(process.pid)
        if stat is not None:
            self._sessions.append((process.pid, stat[2]))
        return process

    def pids(self) -> list[int]:
        """The living processes of the tree."""
        return [process.pid for process in self._living()]

    def read_counters(self) -> Counters:
        """CPU time and memory of the tree; shared pages count once per process."""
        return self._last or tree_counters(self._living())

    def oom_kills(self) -> int | None:
        """Unknown: only a control group counts them."""
        return None

    def refused_processes(self) -> int | None:
        """Unknown: only a control group counts them."""
        return None

    def remains(self) -> Remains:
        """The sessions that a crash would leave behind, known only after a spawn, and the mark of
        all processes."""
        return Remains(sessions=tuple(self._sessions), mark=self.name)

    def find_escaped(self) -> None:
        """Do nothing."""

    def kill(self) -> None:
        """Kill the tree. Raises LimitsError if any process survives."""
        deadline_s = time.monotonic() + sweep.END_TIMEOUT_S
        pause_s = sweep.FIRST_PAUSE_S
        while members := self._living():
            if time.monotonic() > deadline_s:
                survivors = [process.pid for process in members]
                raise LimitsError(
                    f"processes {survivors} survived SIGKILL", "check their state with ps"
                )
            for process in members:
                with suppress(psutil.Error):
                    process.send_signal(signal.SIGKILL)
            reap(self._processes, pause_s)
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, sweep.MAX_PAUSE_S)
        reap(self._processes)

    def close(self) -> None:
        """Kill the tree; there is nothing to remove."""
        if self._last is None:
            counters = self.read_counters()
            self.kill()
            self._last = counters

    def _living(self) -> list[psutil.Process]:
        """The living processes of the tree; reaps ended daemons that became our children."""
        with self._lock:
            for process in self._relatives():
                # psutil compares start times, so a reused pid is not mistaken for ours
                if self._seen.get(process.pid) != process and self._is_ours(process):
                    self._seen[process.pid] = process
            started = {process.pid for process in self._processes}
            for pid in [pid for pid, process in self._seen.items() if not _is_living(process)]:
                del self._seen[pid]
                if pid not in started:
                    _collect(pid)
            return list(self._seen.values())

    def _relatives(self) -> Iterator[psutil.Process]:
        """All our descendants in one scan, parents first."""
        with suppress(psutil.Error):
            yield from psutil.Process().children(recursive=True)

    def _is_ours(self, process: psutil.Process) -> bool:
        with suppress(psutil.Error):
            return (
                process.ppid() in self._seen
                or process.environ().get(sweep.GROUP_VARIABLE) == self.name
                or sweep.has_marking_limit(process.pid, self.name)
            )
        return False


def tree_counters(processes: Iterable[psutil.Process]) -> Counters:
    """The total CPU time and memory of the processes that are still alive."""
    times = [usage for usage in map(_usage, processes) if usage is not None]
    if not times:
        return Counters()
    user_ns, system_ns, resident_bytes, anon_bytes, shared_bytes = (
        sum(column) for column in zip(*times, strict=True)
    )
    return Counters(
        cpu_usage_ns=user_ns + system_ns,
        cpu_user_ns=user_ns,
        cpu_system_ns=system_ns,
        memory_bytes=resident_bytes,
        memory_anon_bytes=anon_bytes,
        memory_shared_bytes=shared_bytes,
        pids=len(times),
    )


def _become_subreaper() -> None:
    """Adopt orphaned daemons instead of init, so they can be found (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _collect(pid: int) -> None:
    """Reap a child that we did not start; ignores processes that are not our children."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _is_living(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _usage(process: psutil.Process) -> tuple[int, int, int, int, int] | None:
    """User and system time, including ended children, and resident, anonymous and shared
    memory."""
    try:
        with process.oneshot():
            times, memory = process.cpu_times(), process.memory_info()
    except psutil.Error:
        return None
    user_ns = round((times.user + times.children_user) * NS_PER_S)
    system_ns = round((times.system + times.children_system) * NS_PER_S)
    return user_ns, system_ns, memory.rss, *_held_bytes(process.pid, memory.rss)


def _held_bytes(pid: int, resident_bytes: int) -> tuple[int, int]:
    """Anonymous and shared memory; if the system does not tell them apart from mapped files, the
    resident memory counts as anonymous."""
    sizes = {}
    for line in (read_text(Path(f"/proc/{pid}/status")) or "").splitlines():
        name, _, size = line.partition(":")
        if name in ("RssAnon", "RssShmem"):
            sizes[name] = int(size.split()[0]) * 1024
    return sizes.get("RssAnon", resident_bytes), sizes.get("RssShmem", 0)
