"""Proofs on the real kernel: the limits hold, and nothing is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

import wsgiload
from wsgiload.errors import LimitsError
from wsgiload.limits import Janitor, LimitedGroup, Limits, remove_stale_groups, select_backend
from wsgiload.limits.v2 import V2Backend, find_mount

pytestmark = [pytest.mark.limits, pytest.mark.usefixtures("real_limits", "nothing_left")]

MIB = 1024 * 1024
FORK_BOMB = """
import os, time
for _ in range(30):
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
print("ready", flush=True)
time.sleep(600)
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
ORCHESTRATOR = """
import json, sys, time
from pathlib import Path
from wsgiload.limits import Janitor, Limits, select_backend
limits = Limits(policy=sys.argv[2], pids=50 if sys.argv[2] == "strict" else None)
with Janitor() as janitor, open(sys.argv[1], "wb") as log:
    group = select_backend(limits).create(limits, "t_crash")
    janitor.watch(group)
    process = group.spawn(["/bin/sh", "-c", "sleep 600 & sleep 600 & wait"], env={}, cwd=Path("/"), log=log)
    janitor.watch(group)
    while len(group.pids()) < 3:
        time.sleep(0.01)
    directories = [str(path) for path in group.remains().directories]
    print(json.dumps({"pids": group.pids(), "directories": directories}), flush=True)
    time.sleep(600)
"""


def eventually(condition: Callable[[], object], timeout_s: float = 20.0) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, "did not happen in time"
        time.sleep(0.005)


def python(group: LimitedGroup, script: str, log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as stream:
        return group.spawn([sys.executable, "-c", script], env={}, cwd=Path("/"), log=stream)


def new_group(limits: Limits, label: str) -> closing[LimitedGroup]:
    return closing(select_backend(limits).create(limits, label))


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_half_a_core_is_half_a_core(tmp_path: Path) -> None:
    last = max(os.sched_getaffinity(0))
    with new_group(Limits(cpus=0.5, server_cpus=(last,)), "t_cpu") as group:
        python(group, "while True: pass", tmp_path / "log")
        eventually(lambda: (group.read_counters().nr_throttled or 0) >= 1)
        first, begun_ns = group.read_counters(), time.monotonic_ns()
        eventually(lambda: time.monotonic_ns() - begun_ns >= 1_500_000_000)
        final, ended_ns = group.read_counters(), time.monotonic_ns()
        assert group.enforcement.read_back["effective_cpus"] == 0.5
    assert final.cpu_usage_ns is not None and first.cpu_usage_ns is not None
    assert (final.cpu_usage_ns - first.cpu_usage_ns) / (ended_ns - begun_ns) == pytest.approx(0.5, abs=0.06)
    assert (final.nr_throttled or 0) > (first.nr_throttled or 0)


def test_too_much_memory_is_fatal_and_counted(tmp_path: Path) -> None:
    with new_group(Limits(memory_bytes=64 * MIB), "t_memory") as group:
        process = python(group, "x = bytearray(200_000_000); print(len(x))", tmp_path / "log")
        assert process.wait(60) == -signal.SIGKILL
        assert (group.oom_kills() or 0) >= 1
        peak_bytes = group.memory_peak_bytes()
        assert peak_bytes is None or 48 * MIB < peak_bytes <= 64 * MIB
    assert (group.oom_kills() or 0) >= 1


def test_no_more_processes_than_allowed(tmp_path: Path) -> None:
    with new_group(Limits(pids=5), "t_pids") as group:
        python(group, FORKS_UNTIL_REFUSED, tmp_path / "log")
        eventually(lambda: (tmp_path / "log").read_text().strip() == "4")
        assert group.read_counters().pids == 5


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


def test_memory_touched_before_the_first_instruction_is_charged(tmp_path: Path) -> None:
    with new_group(Limits(memory_bytes=64 * MIB), "t_entry") as group:
        script = "x = bytearray(20_000_000); print('ready', flush=True); import time; time.sleep(600)"
        python(group, script, tmp_path / "log")
        eventually(lambda: (tmp_path / "log").read_text().startswith("ready"))
        assert (group.read_counters().memory_bytes or 0) > 20_000_000


def test_the_unified_hierarchy_alone_can_hold_and_end_a_tree(tmp_path: Path) -> None:
    if find_mount(Path("/")) is None:
        pytest.skip("no cgroup v2 hierarchy is mounted")
    with closing(V2Backend().create(Limits(), "t_unified")) as group:
        python(group, FORK_BOMB, tmp_path / "log")
        eventually(lambda: (tmp_path / "log").read_text().startswith("ready"))
        assert len(group.pids()) == 31
        assert (group.read_counters().cpu_usage_ns or 0) > 0
    assert not any(path.exists() for path in group.remains().directories)


@pytest.mark.parametrize("policy", ["strict", "none"])
def test_the_janitor_cleans_up_after_a_killed_orchestrator(tmp_path: Path, policy: str) -> None:
    environment = {"PYTHONPATH": str(Path(wsgiload.__file__).parent.parent), "PATH": os.environ["PATH"]}
    command = [sys.executable, "-c", ORCHESTRATOR, str(tmp_path / "log"), policy]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as orchestrator:
        try:
            assert orchestrator.stdout is not None
            told = json.loads(orchestrator.stdout.readline())
            assert all(runs(pid) for pid in told["pids"])
        finally:
            orchestrator.kill()
    eventually(lambda: not any(runs(pid) for pid in told["pids"]))
    eventually(lambda: not any(Path(path).exists() for path in told["directories"]))


def test_an_orderly_end_of_the_janitor_removes_what_was_not_released(real_limits: Limits) -> None:
    with Janitor() as janitor:
        limits = replace(real_limits, cpus=None)
        kept = select_backend(limits).create(limits, "t_kept")
        closed = select_backend(limits).create(limits, "t_closed")
        janitor.watch(kept)
        janitor.watch(closed)
        closed.close()
        janitor.release(closed)
    assert not any(path.exists() for path in kept.remains().directories)
    with pytest.raises(LimitsError, match="has vanished"):
        kept.close()


def test_groups_of_a_crash_without_janitor_are_found_later(tmp_path: Path) -> None:
    script = (
        "from pathlib import Path; from wsgiload.limits import Limits, select_backend; import os, sys\n"
        "limits = Limits(pids=50); group = select_backend(limits).create(limits, 't_stale')\n"
        "with open(sys.argv[1], 'wb') as log:\n"
        "    process = group.spawn(['/bin/sleep', '600'], env={}, cwd=Path('/'), log=log)\n"
        "print(process.pid, group.name, flush=True); os.kill(os.getpid(), 9)\n"
    )
    environment = {"PYTHONPATH": str(Path(wsgiload.__file__).parent.parent), "PATH": os.environ["PATH"]}
    command = [sys.executable, "-c", script, str(tmp_path / "log")]
    done = subprocess.run(command, stdout=subprocess.PIPE, env=environment, check=False)
    pid, name = done.stdout.decode().split()
    assert name in remove_stale_groups()
    eventually(lambda: not runs(int(pid)))
