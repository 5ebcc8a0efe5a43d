"""The real kernel enforces the limits on CPU time, memory, processes and cores, and ends every
process in a group."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from wsgiload.limits import Limits

from .real import (
    FORK_BOMB,
    SHARE_TOLERANCE,
    busy_time,
    disturbance,
    eventually,
    is_running,
    new_group,
    require_cores,
    run_python,
)

pytestmark = [pytest.mark.limits, pytest.mark.usefixtures("real_limits", "no_leftover_groups")]

MIB = 1024 * 1024
DURATION_NS = 4_000_000_000
TWO_BUSY_PROCESSES = """
import os
os.fork()
while True:
    pass
"""
FORKS_UNTIL_REFUSED = """
import os, time
children = 0
try:
    while os.fork() != 0:
        children += 1
except BlockingIOError:
    print(children, flush=True)
time.sleep(600)
"""
ENDLESS_FORKS = """
import os
print("ready", flush=True)
while True:
    try:
        if os.fork() == 0:
            os.setsid()
    except BlockingIOError:
        pass
"""
PREFORK = """
import os, sys, time
worker_bytes = int(sys.argv[1])
for _ in range(3):
    if os.fork() == 0:
        memory = bytearray(os.urandom(1)) * worker_bytes
        until = time.process_time() + 0.2
        while time.process_time() < until:
            pass
        print("ready", flush=True)
        time.sleep(600)
time.sleep(600)
"""
MASTER_WITH_OOM_KILLED_WORKER = """
import os, sys, time
if os.fork() == 0:
    bytearray(200_000_000)
    os._exit(0)
_, status = os.wait()
print(os.waitstatus_to_exitcode(status), flush=True)
time.sleep(600)
"""
AFFINITY = """
import os, time
print(sorted(os.sched_getaffinity(0)), flush=True)
os.sched_setaffinity(0, range(os.cpu_count()))
print(sorted(os.sched_getaffinity(0)), flush=True)
time.sleep(600)
"""


def lines(log: Path) -> list[str]:
    return log.read_text().splitlines()


def test_two_busy_processes_get_half_a_core_together(tmp_path: Path) -> None:
    with new_group(Limits(cpus=0.5), "t_cpu") as group:
        run_python(group, TWO_BUSY_PROCESSES, tmp_path / "log")
        eventually(lambda: len(group.pids()) == 2)

        since, first, begin_ns = busy_time(), group.read_counters(), time.monotonic_ns()
        eventually(lambda: time.monotonic_ns() - begin_ns >= DURATION_NS)
        final, end_ns = group.read_counters(), time.monotonic_ns()
        assert group.enforcement.read_back["effective_cpus"] == 0.5
        assert final.pids == 2

    assert first.cpu_usage_ns is not None and final.cpu_usage_ns is not None
    assert first.nr_periods is not None and final.nr_periods is not None
    used_ns = final.cpu_usage_ns - first.cpu_usage_ns
    periods = final.nr_periods - first.nr_periods
    require_cores(used_ns, end_ns - begin_ns, 0.5, disturbance(since, used_ns, periods))

    # Busy processes that use their whole limit are throttled in nearly every period.
    throttled = (final.nr_throttled or 0) - (first.nr_throttled or 0)
    assert periods * (1 - 2 * SHARE_TOLERANCE) - 2 <= throttled <= periods


def test_exceeding_the_memory_limit_causes_a_counted_oom_kill(tmp_path: Path) -> None:
    with new_group(Limits(memory_bytes=64 * MIB), "t_memory") as group:
        script = "x = bytearray(200_000_000); print(len(x))"
        process = run_python(group, script, tmp_path / "log")
        assert process.wait(60) == -signal.SIGKILL
        assert group.oom_kills() == 1
    assert group.oom_kills() == 1


def test_the_workers_of_a_prefork_server_are_counted(tmp_path: Path) -> None:
    worker_bytes = 20_000_000
    with new_group(Limits(memory_bytes=256 * MIB), "t_children") as group:
        run_python(group, PREFORK, tmp_path / "log", worker_bytes)
        eventually(lambda: lines(tmp_path / "log") == ["ready"] * 3)

        counters = group.read_counters()
        assert len(group.pids()) == counters.pids == 4
        assert (counters.memory_bytes or 0) > 3 * worker_bytes
        assert (counters.memory_anon_bytes or 0) > 3 * worker_bytes
        assert (counters.cpu_usage_ns or 0) > 3 * 200_000_000


def test_the_master_survives_the_oom_kill_of_its_worker(tmp_path: Path) -> None:
    with new_group(Limits(memory_bytes=64 * MIB), "t_worker") as group:
        master = run_python(group, MASTER_WITH_OOM_KILLED_WORKER, tmp_path / "log")
        eventually(lambda: lines(tmp_path / "log") == [str(-signal.SIGKILL)])
        assert master.poll() is None, "the master was killed, too"
        assert group.oom_kills() == 1
        assert group.pids() == [master.pid]


def test_a_group_cannot_exceed_its_process_limit(tmp_path: Path) -> None:
    with new_group(Limits(pids=5), "t_pids") as group:
        run_python(group, FORKS_UNTIL_REFUSED, tmp_path / "log")
        eventually(lambda: (tmp_path / "log").read_text().strip() == "4")
        assert group.read_counters().pids == 5


def test_a_server_stays_on_its_pinned_cores(tmp_path: Path) -> None:
    last = max(os.sched_getaffinity(0))
    with new_group(Limits(server_cpus=(last,)), "t_cores") as group:
        run_python(group, AFFINITY, tmp_path / "log")
        eventually(lambda: len(lines(tmp_path / "log")) == 2)

        first, widened = lines(tmp_path / "log")
        assert first == f"[{last}]"
        assert group.enforcement.read_back["affinity"] == str(last)
        # A systemd user manager does not delegate cpusets.
        if group.enforcement.read_back["cpuset"] == str(last):
            assert widened == f"[{last}]", "the process left its cpuset"


def test_killing_a_group_ends_every_process_of_a_fork_bomb(tmp_path: Path) -> None:
    with new_group(Limits(pids=64), "t_bomb") as group:
        process = run_python(group, FORK_BOMB, tmp_path / "log")
        eventually(lambda: (tmp_path / "log").read_text().startswith("ready"))
        pids = group.pids()
        assert len(pids) == 31

        group.kill()
        assert group.pids() == []
        assert process.returncode == -signal.SIGKILL

    assert not any(is_running(pid) for pid in pids)
    assert not any(path.exists() for path in group.remains().directories)


def test_killing_a_group_ends_processes_that_keep_forking(tmp_path: Path) -> None:
    with new_group(Limits(pids=64, cpus=0.5), "t_forks") as group:
        run_python(group, ENDLESS_FORKS, tmp_path / "log")
        eventually(lambda: (group.read_counters().pids or 0) >= 60)
        pids = group.pids()
        group.kill()
        assert group.pids() == []

    assert not any(is_running(pid) for pid in pids)
    assert not any(path.exists() for path in group.remains().directories)


def test_memory_is_charged_from_the_start_of_the_process(tmp_path: Path) -> None:
    with new_group(Limits(memory_bytes=64 * MIB), "t_entry") as group:
        script = (
            "x = bytearray(20_000_000); print('ready', flush=True); import time; time.sleep(600)"
        )
        run_python(group, script, tmp_path / "log")
        eventually(lambda: (tmp_path / "log").read_text().startswith("ready"))
        assert (group.read_counters().memory_bytes or 0) > 20_000_000


def test_counters_remain_after_the_processes_ended(tmp_path: Path) -> None:
    with new_group(Limits(memory_bytes=64 * MIB), "t_after") as group:
        assert run_python(group, "x = bytearray(20_000_000)", tmp_path / "log").wait(60) == 0
        counters = group.read_counters()
        assert (counters.cpu_usage_ns or 0) > 0 and counters.pids == 0 and counters.oom_kill == 0
    assert group.read_counters().cpu_usage_ns == counters.cpu_usage_ns
