"""Whether other processes or the hypervisor took CPU time from the tests, judged by the product's
own thresholds for a disturbed second. Only then may a failed timed test be repeated."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from pathlib import Path

from wsgiload.attribution.host_disturbance import MAX_FOREIGN_CPU, MAX_STEAL
from wsgiload.doctor.checks import CpuTimes, read_cpu_times

PERIOD_S = 1.0
ROOT = Path("/")


@dataclass(slots=True)
class OwnProcesses:
    """The CPU ticks of this process and its descendants, also of those that another process
    adopted."""

    pids: set[int] = field(default_factory=lambda: {os.getpid()})

    def total(self) -> int:
        """The ticks that they have used so far, with those of the children that they waited for."""
        stats = {pid: fields for pid in _pids() if (fields := _stat(pid)) is not None}
        children: dict[int, list[int]] = {}
        for pid, (parent, _) in stats.items():
            children.setdefault(parent, []).append(pid)

        pending, self.pids = list(self.pids), set()
        while pending:
            pid = pending.pop()
            if pid in stats and pid not in self.pids:
                self.pids.add(pid)
                pending += children.get(pid, [])
        return sum(stats[pid][1] for pid in self.pids)


class HostWatch(threading.Thread):
    """Counts the disturbed seconds of the running test."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.disturbed_s = 0.0
        self._own = OwnProcesses()

    def run(self) -> None:
        """Compare the host's counters with those of the tests' processes, until the process
        ends."""
        before, own_before = read_cpu_times(ROOT), self._own.total()
        while True:
            threading.Event().wait(PERIOD_S)
            after, own_after = read_cpu_times(ROOT), self._own.total()
            if before and after and is_disturbed(before, after, own_after - own_before):
                self.disturbed_s += PERIOD_S
            before, own_before = after, own_after


def is_disturbed(before: CpuTimes, after: CpuTimes, own: int) -> bool:
    """Whether a period was disturbed in which the tests used ``own`` ticks."""
    total = after.total - before.total
    foreign = after.busy - before.busy - own
    return foreign > MAX_FOREIGN_CPU * total or after.stolen - before.stolen > MAX_STEAL * total


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _stat(pid: int) -> tuple[int, int] | None:
    """The parent, and the ticks of the process and of the children that it has waited for."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[1]), sum(map(int, fields[11:15]))
