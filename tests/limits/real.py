"""Helpers of the tests on the real kernel: starting limited programs, waiting, and checking CPU
shares on a possibly busy host."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from wsgiload.limits import LimitedGroup, Limits, select_backend

FORK_BOMB = """
import os, time
for _ in range(30):
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
print("ready", flush=True)
time.sleep(600)
"""

# Time is less accurate in an emulated machine.
SHARE_TOLERANCE = 0.10 if "WSGILOAD_GUEST" in os.environ else 0.05
MAX_FOREIGN_CORES = 0.1
CPU_PERIOD_S = 0.1
# Of the expected CPU periods.
MAX_LOST_SHARE = 0.05


def eventually(condition: Callable[[], object], timeout_s: float = 20.0) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, f"condition not met within {timeout_s:g} s"
        time.sleep(0.005)


def run_python(
    group: LimitedGroup, script: str, log: Path, *arguments: object
) -> subprocess.Popen[bytes]:
    """Start a Python script in the group, with its output in ``log``."""
    argv = [sys.executable, "-c", script, *map(str, arguments)]
    with log.open("wb") as stream:
        return group.spawn(argv, env={}, cwd=Path("/"), log=stream)


def new_group(limits: Limits, label: str) -> closing[LimitedGroup]:
    return closing(select_backend(limits).create(limits, label))


def is_running(pid: int) -> bool:
    """Whether the process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def disturbance(since: tuple[float, float], ours_ns: int, periods: int) -> str | None:
    """How the host was disturbed since ``busy_time`` returned ``since``, if it was: other processes
    or the hypervisor used CPU time, or CPU periods are missing because an emulated machine was not
    scheduled. ``ours_ns`` is the CPU time of the group, ``periods`` its number of CPU periods."""
    begin_s, busy_begin_s = since
    end_s, busy_end_s = busy_time()
    foreign_cores = (busy_end_s - busy_begin_s - ours_ns / 1e9) / (end_s - begin_s)
    if foreign_cores > MAX_FOREIGN_CORES:
        return f"others used {foreign_cores:.2f} cores"

    expected_periods = (end_s - begin_s) / CPU_PERIOD_S
    if periods < expected_periods * (1 - MAX_LOST_SHARE):
        return f"only {periods} of {expected_periods:.0f} CPU periods began"
    return None


def busy_time() -> tuple[float, float]:
    """The current time and the total busy time of all cores, in seconds."""
    fields = [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return time.monotonic(), (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def require_cores(used_ns: int, duration_ns: int, limit: float, disturbed: str | None) -> None:
    """Check that a group used its whole CPU limit and no more. On a disturbed host, using less is
    inconclusive."""
    cores = used_ns / duration_ns
    assert cores <= limit * (1 + SHARE_TOLERANCE), f"{cores:.4f} cores with a limit of {limit:g}"
    if cores >= limit * (1 - SHARE_TOLERANCE):
        return

    if disturbed is not None:
        pytest.skip(f"INCONCLUSIVE(host): {cores:.4f} cores of {limit:g} while {disturbed}")
    pytest.fail(f"{cores:.4f} cores of {limit:g} on an undisturbed host")
