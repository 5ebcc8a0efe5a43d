"""The cores and priorities of client and server."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from dataclasses import dataclass

_PRIORITY = 10
# loadgen switches to real-time priority only if its niceness is 0.
ORDINARY_NICENESS = 1
_NOFILE = 65_536


@dataclass(frozen=True, slots=True)
class Placement:
    """A core, and whether the process runs at real-time priority (SCHED_RR), which preempts other
    processes."""

    core: int
    real_time: bool

    def ordinary(self) -> Placement:
        """The same core without real-time priority (SCHED_OTHER)."""
        return Placement(self.core, False)

    def before_exec(self) -> Callable[[], None]:
        """A function that applies this placement in the child before its exec."""
        nofile = open_files_possible()

        def apply() -> None:
            os.sched_setaffinity(0, [self.core])
            resource.setrlimit(resource.RLIMIT_NOFILE, (nofile, max(nofile, _hard_limit())))
            if self.real_time:
                os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(_PRIORITY))
            else:
                os.nice(ORDINARY_NICENESS)

        return apply


def choose_cores() -> tuple[int, int]:
    """The cores of client and server: the first and the last that this process may use."""
    cores = sorted(os.sched_getaffinity(0))
    return cores[0], cores[-1]


def real_time_permitted() -> bool:
    """Whether this process may use real-time priority. The priority is restored."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(_PRIORITY))
    except PermissionError:
        return False
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return True


def open_files_possible() -> int:
    """The maximum number of open files of a child; above the limit of this process if permitted."""
    if _hard_limit() >= _NOFILE:
        return _NOFILE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, _NOFILE))
    except (ValueError, OSError):
        return hard
    return _NOFILE


def _hard_limit() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]
