"""What the tests on the real kernel share: programs to limit, waiting, and judging what a busy host
can spoil."""

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

# An emulated machine keeps time less well than a real one.
SHARE_TOLERANCE = 0.10 if "WSGILOAD_GUEST" in os.environ else 0.05
FOREIGN_LIMIT_CORES = 0.1
PERIOD_S = 0.1
LOST_LIMIT = 0.05


def eventually(condition: Callable[[], object], timeout_s: float = 20.0) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, "did not happen in time"
        time.sleep(0.005)


def python(group: LimitedGroup, script: str, log: Path, *words: object) -> subprocess.Popen[bytes]:
    with log.open("wb") as stream:
        return group.spawn(
            [sys.executable, "-c", script, *map(str, words)], env={}, cwd=Path("/"), log=stream
        )


def new_group(limits: Limits, label: str) -> closing[LimitedGroup]:
    return closing(select_backend(limits).create(limits, label))


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def disturbance(since: tuple[float, float], ours_ns: int, periods: int) -> str | None:
    """What others did to us since ``busy`` was asked: the cores they used, the hypervisor included,
    or, in an emulated machine that did not get its own processors in time, the CPU periods that
    never began."""
    then_s, busy_then_s = since
    now_s, busy_now_s = busy()
    foreign = (busy_now_s - busy_then_s - ours_ns / 1e9) / (now_s - then_s)
    if foreign > FOREIGN_LIMIT_CORES:
        return f"others used {foreign:.2f} cores"
    usual = (now_s - then_s) / PERIOD_S
    return (
        f"only {periods} of {usual:.0f} CPU periods began"
        if periods < usual * (1 - LOST_LIMIT)
        else None
    )


def busy() -> tuple[float, float]:
    """The time, and the seconds for which all cores together were not idle."""
    fields = [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return time.monotonic(), (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def require_share(used_ns: int, length_ns: int, expected: float, disturbed: str | None) -> None:
    """A share of CPU time: more than the limit is a failure always, less only where nobody else is
    to blame."""
    share = used_ns / length_ns
    assert share <= expected * (1 + SHARE_TOLERANCE), (
        f"{share:.4f} cores in a limit of {expected:g}"
    )
    if share >= expected * (1 - SHARE_TOLERANCE):
        return
    if disturbed is not None:
        pytest.skip(f"INCONCLUSIVE(host): {share:.4f} cores of {expected:g} while {disturbed}")
    pytest.fail(f"{share:.4f} cores of {expected:g}, and nobody else is to blame")
