"""Where a process runs and how urgently: one core for the server, another for the client, and a
priority for both."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from dataclasses import dataclass

_PRIORITY = 10
# loadgen takes real-time priority by itself unless its niceness was chosen.
ORDINARY_NICENESS = 1
_NOFILE = 65_536


@dataclass(frozen=True, slots=True)
class Placement:
    """A core, and whether the process runs at real-time priority (SCHED_RR), which keeps neighbours
    away."""

    core: int
    real_time: bool

    def ordinary(self) -> Placement:
        """The same core at ordinary priority."""
        return Placement(self.core, False)

    def before_exec(self) -> Callable[[], None]:
        """What the child does to itself before it becomes the program."""
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
    """The client's core and the server's: the first and the last that this process may use."""
    cores = sorted(os.sched_getaffinity(0))
    return cores[0], cores[-1]


def real_time_permitted() -> bool:
    """Whether this process may have real-time priority; it is left as it was."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(_PRIORITY))
    except PermissionError:
        return False
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return True


def open_files_possible() -> int:
    """How many files a child may have open at most: more than the limit of this process where that
    is permitted."""
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
