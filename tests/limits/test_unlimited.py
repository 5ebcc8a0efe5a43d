"""No control group: the process tree is still found, measured and ended."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from wsgiload.errors import LimitsError, ServerError
from wsgiload.limits import Limits
from wsgiload.limits.unlimited import UnlimitedBackend

TREE = """
import os, subprocess, sys
children = [subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) for _ in range(3)]
print("ready", flush=True)
children[0].wait()
"""


def test_strict_refuses() -> None:
    with pytest.raises(LimitsError, match="the limit on cpus, memory cannot hold"):
        UnlimitedBackend().create(Limits(cpus=1, memory_bytes=1 << 26), "t")


def test_a_tree_is_counted_and_ended(tmp_path: Path) -> None:
    group = UnlimitedBackend().create(Limits(server_cpus=(min(os.sched_getaffinity(0)),)), "t")
    with (tmp_path / "log").open("w+b") as log:
        process = group.spawn([sys.executable, "-c", TREE], env={}, cwd=tmp_path, log=log)
        while not (tmp_path / "log").read_bytes():
            assert process.poll() is None
    pids = group.pids()
    counters = group.read_counters()
    assert len(pids) == 4 and process.pid in pids
    assert all(len(os.sched_getaffinity(pid)) == 1 for pid in pids)
    assert counters.pids == 4
    assert counters.memory_bytes is not None and counters.memory_bytes > 4_000_000
    assert counters.cpu_usage_ns is not None and counters.nr_periods is None
    assert [session for session, _ in group.remains().sessions] == [process.pid]
    group.kill()
    assert group.pids() == [] and process.returncode == -9
    group.close()
    group.close()
    assert group.oom_kills() is None and group.memory_peak_bytes() is None


def test_a_program_that_does_not_exist(tmp_path: Path) -> None:
    group = UnlimitedBackend().create(Limits(), "t")
    with (tmp_path / "log").open("wb") as log, pytest.raises(ServerError, match="cannot be started"):
        group.spawn(["/no/such/program"], env={}, cwd=tmp_path, log=log)
    group.close()
