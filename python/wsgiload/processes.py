"""What single processes used: CPU time and run-queue wait, summed over their threads.

The kernel's figure for a process is often that of its first thread alone, so each thread is read. Changes nothing and
never raises: a process that ended keeps what was last known of it, and what cannot be read is None.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from wsgiload.limits.files import under

READ_BYTES = 1_024
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
PARENT_FIELD = 1  # of /proc/<pid>/stat, behind the name
RESIDENT_FIELD = 1  # of /proc/<pid>/statm

PROCESS_COLUMNS = ("cell", "t_ns", "pid", "parent_pid", "cpu_ns", "run_queue_wait_ns", "threads")
CLIENT_COLUMNS = ("cell", "t_ns", "cpu_ns", "run_queue_wait_ns", "memory_bytes", "threads")


@dataclass(frozen=True, slots=True)
class ProcessUsage:
    """One process of the server at one moment; counters since it began."""

    t_ns: int
    pid: int
    parent_pid: int | None
    cpu_ns: int
    run_queue_wait_ns: int
    threads: int

    def row(self, cell: str) -> list[str | int | None]:
        """One line of processes.csv, in the order of ``PROCESS_COLUMNS``."""
        return [cell, self.t_ns, self.pid, self.parent_pid, self.cpu_ns, self.run_queue_wait_ns, self.threads]


@dataclass(frozen=True, slots=True)
class ClientUsage:
    """The generator's process and our own together at one moment; counters since they began."""

    t_ns: int
    cpu_ns: int
    run_queue_wait_ns: int
    memory_bytes: int | None
    threads: int

    def row(self, cell: str) -> list[str | int | None]:
        """One line of client.csv, in the order of ``CLIENT_COLUMNS``."""
        return [cell, self.t_ns, self.cpu_ns, self.run_queue_wait_ns, self.memory_bytes, self.threads]


@dataclass(slots=True)
class _Process:
    """A process whose threads' files stay open; ended threads keep their last figures."""

    parent_pid: int | None
    memory: int | None
    descriptors: dict[int, int] = field(default_factory=dict)
    figures: dict[int, tuple[int, int]] = field(default_factory=dict)

    def find_threads(self, folder: Path) -> None:
        """Open the files of threads that began since."""
        for task in (folder / "task").iterdir():
            thread = int(task.name)
            if thread not in self.descriptors and (descriptor := _open(task / "schedstat")) is not None:
                self.descriptors[thread] = descriptor

    def read(self) -> tuple[int, int, int]:
        """CPU time and wait of all threads there ever were, and how many there are."""
        for thread, descriptor in list(self.descriptors.items()):
            try:
                words = os.pread(descriptor, READ_BYTES, 0).split()
                self.figures[thread] = (int(words[0]), int(words[1]))
            except (OSError, ValueError, IndexError):
                os.close(self.descriptors.pop(thread))
        cpu_ns, wait_ns = (
            (sum(column) for column in zip(*self.figures.values(), strict=True)) if self.figures else (0, 0)
        )
        return cpu_ns, wait_ns, len(self.descriptors)

    def close(self) -> None:
        for descriptor in [*self.descriptors.values(), *([] if self.memory is None else [self.memory])]:
            os.close(descriptor)
        self.descriptors.clear()
        self.memory = None


class ProcessWatch:
    """The processes that ``pids`` names, looked for again at each ``refresh``; call ``close`` at the end."""

    def __init__(self, pids: Callable[[], Iterable[int]], root: Path = Path("/")) -> None:
        self._pids = pids
        self._proc = under(root, "/proc")
        self._processes: dict[int, _Process] = {}

    def refresh(self) -> None:
        """Notice processes and threads that began since; those that ended keep their figures."""
        try:
            pids = list(self._pids())
        except Exception:  # whatever breaks in the source must not end the sampler
            return
        for pid in pids:
            folder = self._proc / str(pid)
            if pid not in self._processes:
                self._processes[pid] = _Process(_parent(folder), _open(folder / "statm"))
            with suppress(OSError):
                self._processes[pid].find_threads(folder)

    def usage(self, t_ns: int) -> list[ProcessUsage]:
        """Every process seen so far that has a thread left."""
        found = []
        for pid, process in self._processes.items():
            cpu_ns, wait_ns, threads = process.read()
            if threads:
                found.append(ProcessUsage(t_ns, pid, process.parent_pid, cpu_ns, wait_ns, threads))
        return found

    def total(self, t_ns: int) -> ClientUsage:
        """All of them together, ended ones included."""
        read = [process.read() for process in self._processes.values()]
        memory = [_resident_bytes(process.memory) for process in self._processes.values() if process.memory is not None]
        known = [value for value in memory if value is not None]
        cpu_ns, wait_ns, threads = (sum(column) for column in zip(*read, strict=True)) if read else (0, 0, 0)
        return ClientUsage(t_ns, cpu_ns, wait_ns, sum(known) if known else None, threads)

    def close(self) -> None:
        """Give the descriptors back."""
        for process in self._processes.values():
            process.close()


def proportional_bytes(pids: Iterable[int], root: Path = Path("/")) -> int | None:
    """The proportional set size (PSS) of processes together: shared pages count once, however many share them.

    The kernel walks their page tables for it and holds them up meanwhile, so never during a measurement.
    """
    total = None
    for pid in pids:
        with suppress(OSError, ValueError, IndexError):
            text = under(root, f"/proc/{pid}/smaps_rollup").read_text()
            line = next(line for line in text.splitlines() if line.startswith("Pss:"))
            total = (total or 0) + int(line.split()[1]) * 1024
    return total


def _open(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def _parent(folder: Path) -> int | None:
    try:
        return int((folder / "stat").read_text().rpartition(")")[2].split()[PARENT_FIELD])
    except (OSError, ValueError, IndexError):
        return None


def _resident_bytes(descriptor: int) -> int | None:
    try:
        return int(os.pread(descriptor, READ_BYTES, 0).split()[RESIDENT_FIELD]) * PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return None
