"""Whether other processes or the hypervisor took CPU time from the tests, judged by the product's
own thresholds for a disturbed second. Only then may a failed timed test be repeated."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from wsgiload.attribution.host_disturbance import MAX_FOREIGN_CPU, MAX_STEAL
from wsgiload.doctor.checks import CpuTimes, read_cpu_times

PERIOD_S = 1.0
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
ROOT = Path("/")


@dataclass(slots=True)
class OwnProcesses:
    """This process and its descendants, also those that another process adopted."""

    processes: set[psutil.Process] = field(default_factory=lambda: {psutil.Process()})

    def total(self) -> float:
        """The CPU ticks that they have used so far, with those of the children that they waited
        for."""
        used_s = 0.0
        for process in list(self.processes):
            with suppress(psutil.NoSuchProcess):
                self.processes.update(process.children(recursive=True))
        for process in list(self.processes):
            try:
                used_s += sum(process.cpu_times()[:4])
            except psutil.NoSuchProcess:
                self.processes.remove(process)
        return used_s * TICKS_PER_S


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


def is_disturbed(before: CpuTimes, after: CpuTimes, own: float) -> bool:
    """Whether a period was disturbed in which the tests used ``own`` ticks."""
    total = after.total - before.total
    foreign = after.busy - before.busy - own
    return foreign > MAX_FOREIGN_CPU * total or after.stolen - before.stolen > MAX_STEAL * total
