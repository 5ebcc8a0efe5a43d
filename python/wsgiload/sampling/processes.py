"""The resource use of individual processes: CPU time and run-queue wait, summed over their threads.

``/proc/PID/schedstat`` covers only the first thread, so the file of each thread is read. This
module finds the files, and a sampler reads them. Read-only and never raises: an ended process keeps
its last values; None: unreadable.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from wsgiload.limits.files import under

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
PARENT_FIELD = 1  # of /proc/<pid>/stat, after the name
RESIDENT_FIELD = 1  # of /proc/<pid>/statm

PROCESS_COLUMNS = ("cell", "t_ns", "pid", "parent_pid", "cpu_ns", "run_queue_wait_ns", "threads")
CLIENT_COLUMNS = ("cell", "t_ns", "cpu_ns", "run_queue_wait_ns", "memory_bytes", "threads")


@dataclass(frozen=True, slots=True)
class ProcessUsage:
    """One process of the server at one time, with counters since its start."""

    t_ns: int
    pid: int
    parent_pid: int | None
    cpu_ns: int
    run_queue_wait_ns: int
    threads: int

    def row(self, cell: str) -> list[str | int | None]:
        """One line of processes.csv, in the order of ``PROCESS_COLUMNS``."""
        return [
            cell,
            self.t_ns,
            self.pid,
            self.parent_pid,
            self.cpu_ns,
            self.run_queue_wait_ns,
            self.threads,
        ]


@dataclass(frozen=True, slots=True)
class ClientUsage:
    """The generator's process and this process together at one time, with counters since their
    start."""

    t_ns: int
    cpu_ns: int
    run_queue_wait_ns: int
    memory_bytes: int | None
    threads: int

    def row(self, cell: str) -> list[str | int | None]:
        """One line of client.csv, in the order of ``CLIENT_COLUMNS``."""
        return [
            cell,
            self.t_ns,
            self.cpu_ns,
            self.run_queue_wait_ns,
            self.memory_bytes,
            self.threads,
        ]


@dataclass(slots=True)
class _Process:
    """A process; ended threads keep their last values."""

    parent_pid: int | None
    threads: set[int] = field(default_factory=set)
    # CPU time and wait of each thread.
    figures: dict[int, tuple[int, int]] = field(default_factory=dict)

    def totals(self) -> tuple[int, int]:
        """CPU time and wait of all threads, including ended ones."""
        return sum(cpu_ns for cpu_ns, _ in self.figures.values()), sum(
            wait_ns for _, wait_ns in self.figures.values()
        )


class ProcessWatch:
    """Finds the files with the resource use of the processes that ``pids`` returns, and parses
    their contents.

    A file has a number, which identifies its contents in each sample.
    """

    def __init__(self, pids: Callable[[], Iterable[int]], root: Path = Path("/")) -> None:
        self._pids = pids
        self._proc = under(root, "/proc")
        self._processes: dict[int, _Process] = {}
        # Process and thread of each file; the thread is None for the memory of the process.
        self._owners: list[tuple[int, int | None]] = []

    def find(self) -> list[tuple[int, Path]]:
        """The files of new processes and threads, with their numbers."""
        try:
            pids = list(self._pids())
        except Exception:  # an error in the source must not end the sampler
            return []
        known = len(self._owners)
        paths = [path for pid in pids for path in self._find_of(pid)]
        return list(enumerate(paths, start=known))

    def _find_of(self, pid: int) -> Iterator[Path]:
        folder = self._proc / str(pid)
        if pid not in self._processes:
            self._processes[pid] = _Process(_parent(folder))
            self._owners.append((pid, None))
            yield folder / "statm"
        threads = self._processes[pid].threads
        for thread in sorted(_threads(folder) - threads):
            threads.add(thread)
            self._owners.append((pid, thread))
            yield folder / "task" / str(thread) / "schedstat"

    def usage(self, t_ns: int, contents: Mapping[int, bytes]) -> list[ProcessUsage]:
        """Every process that still has threads, from the contents of the files at this time."""
        alive, _ = self._take(contents)
        return [
            ProcessUsage(t_ns, pid, process.parent_pid, *process.totals(), alive[pid])
            for pid, process in self._processes.items()
            if alive[pid]
        ]

    def total(self, t_ns: int, contents: Mapping[int, bytes]) -> ClientUsage:
        """The total of all processes, including ended ones."""
        alive, memory_bytes = self._take(contents)
        totals = [process.totals() for process in self._processes.values()]
        cpu_ns, wait_ns = (
            (sum(column) for column in zip(*totals, strict=True)) if totals else (0, 0)
        )
        return ClientUsage(t_ns, cpu_ns, wait_ns, memory_bytes, alive.total())

    def _take(self, contents: Mapping[int, bytes]) -> tuple[Counter[int], int | None]:
        """Store the contents; returns the number of threads per process, and the total memory."""
        alive: Counter[int] = Counter()
        memory: list[int] = []
        for number, content in contents.items():
            pid, thread = self._owners[number]
            with suppress(ValueError, IndexError):
                words = content.split()
                if thread is None:
                    memory.append(int(words[RESIDENT_FIELD]) * PAGE_BYTES)
                else:
                    self._processes[pid].figures[thread] = (int(words[0]), int(words[1]))
                    alive[pid] += 1
        return alive, sum(memory) if memory else None


def proportional_bytes(pids: Iterable[int], root: Path = Path("/")) -> int | None:
    """The total proportional set size (PSS) of processes: each shared page counts once.

    The kernel walks and locks their page tables, so do not call this during a measurement.
    """
    total = None
    for pid in pids:
        with suppress(OSError, ValueError, IndexError):
            text = under(root, f"/proc/{pid}/smaps_rollup").read_text()
            line = next(line for line in text.splitlines() if line.startswith("Pss:"))
            total = (total or 0) + int(line.split()[1]) * 1024
    return total


def _threads(folder: Path) -> set[int]:
    try:
        return set(map(int, os.listdir(folder / "task")))  # noqa: PTH208, half the time of pathlib
    except OSError:
        return set()


def _parent(folder: Path) -> int | None:
    try:
        return int((folder / "stat").read_text().rpartition(")")[2].split()[PARENT_FIELD])
    except (OSError, ValueError, IndexError):
        return None
