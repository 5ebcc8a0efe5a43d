"""The proofs that limits hold on the real kernel: CPU time, memory, processes, cores, the end of
everything inside."""

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
    busy,
    disturbance,
    eventually,
    new_group,
    python,
    require_share,
    runs,
)

pytestmark = [pytest.mark.limits, pytest.mark.usefixtures("real_limits", "nothing_left")]

MIB = 1024 * 1024
LENGTH_NS = 4_000_000_000
BURNERS = """
import os
os.fork()
while True:
    pass
"""
FORKS_UNTIL_REFUSED = """
import os, time
made = 0
try:
    while os.fork() != 0:
        made += 1
except BlockingIOError:
    print(made, flush=True)
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
each = int(sys.argv[1])
for number in range(3):
    if os.fork() == 0:
        held = bytearray(os.urandom(1)) * each
        until = time.process_time() + 0.2
        while time.process_time() < until:
            pass
        print("ready", flush=True)
        time.sleep(600)
time.sleep(600)
"""
MASTER_OF_A_GLUTTON = """
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


def test_half_a_core_is_half_a_core_for_two_who_want_more(tmp_path: Path) -> None:
    with new_group(Limits(cpus=0.5), "t_cpu") as group:
        python(group, BURNERS, tmp_path / "log")
        eventually(lambda: len(group.pids()) == 2)
        since, first, begun_ns = busy(), group.read_counters(), time.monotonic_ns()
        eventually(lambda: time.monotonic_ns() - begun_ns >= LENGTH_NS)
        final, ended_ns = group.read_counters(), time.monotonic_ns()
        assert group.enforcement.read_back["effective_cpus"] == 0.5
        assert final.pids == 2
    assert first.cpu_usage_ns is not None and final.cpu_usage_ns is not None
    assert first.nr_periods is not None and final.nr_periods is not None
    used_ns = final.cpu_usage_ns - first.cpu_usage_ns
    periods = final.nr_periods - first.nr_periods
    require_share(used_ns, ended_ns - begun_ns, 0.5, disturbance(since, used_ns, periods))
    # Two who never sleep and got what they are allowed were stopped in nearly every period.
    throttled = (final.nr_throttled or 0) - (first.nr_throttled or 0)
    assert periods * (1 - 2 * SHARE_TOLERANCE) - 2 <= throttled <= periods


def test_too_much_memory_is_fatal_and_counted(tmp_path: Path) -> None:
    with new_group(Limits(memory_bytes=64 * MIB), "t_memory") as group:
        process = python(group, "x = bytearray(200_000_000); print(len(x))", tmp_path / "log")
        assert process.wait(60) == -signal.SIGKILL
        assert group.oom_kills() == 1
        peak_bytes = group.memory_peak_bytes()
        assert peak_bytes is None or 48 * MIB < peak_bytes <= 64 * MIB
    assert group.oom_kills() == 1


def test_the_children_of_a_prefork_server_are_counted(tmp_path: Path) -> None:
    each = 20_000_000
    with new_group(Limits(memory_bytes=256 * MIB), "t_children") as group:
        python(group, PREFORK, tmp_path / "log", each)
        eventually(lambda: lines(tmp_path / "log") == ["ready"] * 3)
        counters = group.read_counters()
        assert len(group.pids()) == counters.pids == 4
        assert (counters.memory_bytes or 0) > 3 * each
        assert (counters.memory_anon_bytes or 0) > 3 * each
        assert (counters.cpu_usage_ns or 0) > 3 * 200_000_000


def test_a_worker_killed_for_its_memory_leaves_its_master_and_a_count(tmp_path: Path) -> None:
    with new_group(Limits(memory_bytes=64 * MIB), "t_worker") as group:
        master = python(group, MASTER_OF_A_GLUTTON, tmp_path / "log")
        eventually(lambda: lines(tmp_path / "log") == [str(-signal.SIGKILL)])
        assert master.poll() is None, "the master was ended, too"
        assert group.oom_kills() == 1
        assert group.pids() == [master.pid]


def test_no_more_processes_than_allowed(tmp_path: Path) -> None:
    with new_group(Limits(pids=5), "t_pids") as group:
        python(group, FORKS_UNTIL_REFUSED, tmp_path / "log")
        eventually(lambda: (tmp_path / "log").read_text().strip() == "4")
        assert group.read_counters().pids == 5


def test_a_server_stays_on_its_cores(tmp_path: Path) -> None:
    last = max(os.sched_getaffinity(0))
    with new_group(Limits(server_cpus=(last,)), "t_cores") as group:
        python(group, AFFINITY, tmp_path / "log")
        eventually(lambda: len(lines(tmp_path / "log")) == 2)
        first, widened = lines(tmp_path / "log")
        assert first == f"[{last}]"
        assert group.enforcement.read_back["affinity"] == str(last)
        if group.enforcement.read_back["cpuset"] == str(
            last
        ):  # a user's own systemd hands no cpuset down
            assert widened == f"[{last}]", "a cpuset cannot be left"


def test_a_fork_bomb_is_ended_whole(tmp_path: Path) -> None:
    with new_group(Limits(pids=64), "t_bomb") as group:
        process = python(group, FORK_BOMB, tmp_path / "log")
        eventually(lambda: (tmp_path / "log").read_text().startswith("ready"))
        pids = group.pids()
        assert len(pids) == 31
        group.kill()
        assert group.pids() == []
        assert process.returncode == -signal.SIGKILL
    assert not any(runs(pid) for pid in pids)
    assert not any(path.exists() for path in group.remains().directories)


def test_what_goes_on_forking_is_ended_whole(tmp_path: Path) -> None:
    with new_group(Limits(pids=64, cpus=0.5), "t_forks") as group:
        python(group, ENDLESS_FORKS, tmp_path / "log")
        eventually(lambda: (group.read_counters().pids or 0) >= 60)
        pids = group.pids()
        group.kill()
        assert group.pids() == []
    assert not any(runs(pid) for pid in pids)
    assert not any(path.exists() for path in group.remains().directories)


def test_memory_touched_before_the_first_instruction_is_charged(tmp_path: Path) -> None:
    with new_group(Limits(memory_bytes=64 * MIB), "t_entry") as group:
        script = (
            "x = bytearray(20_000_000); print('ready', flush=True); import time; time.sleep(600)"
        )
        python(group, script, tmp_path / "log")
        eventually(lambda: (tmp_path / "log").read_text().startswith("ready"))
        assert (group.read_counters().memory_bytes or 0) > 20_000_000


def test_counters_outlive_the_processes(tmp_path: Path) -> None:
    with new_group(Limits(memory_bytes=64 * MIB), "t_after") as group:
        assert python(group, "x = bytearray(20_000_000)", tmp_path / "log").wait(60) == 0
        ended = group.read_counters()
        assert (ended.cpu_usage_ns or 0) > 0 and ended.pids == 0 and ended.oom_kill == 0
    assert group.read_counters().cpu_usage_ns == ended.cpu_usage_ns
