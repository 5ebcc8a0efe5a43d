"""Without cgroups, the process tree is still found, measured and ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

import wsgiload
from wsgiload.errors import LimitsError, ServerError
from wsgiload.limits import Limits, launch, unlimited
from wsgiload.limits.unlimited import UnlimitedBackend

from .real import eventually, is_running

TREE = """
import os, subprocess, sys
children = [subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) for _ in range(3)]
print("ready", flush=True)
children[0].wait()
"""


DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() != 0:
        os._exit(0)
    until = time.process_time() + 0.3
    while time.process_time() < until:
        pass
    print("ready", flush=True)
    time.sleep(600)
os.wait()
time.sleep(600)
"""
# Leaves its session, its parent and its variables behind.
ESCAPE = """
import os, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        sleep = "import time; print('ready', flush=True); time.sleep(600)"
        os.execve(sys.executable, [sys.executable, "-c", sleep], {})
"""
ORCHESTRATOR = """
import json, os, sys, time
from pathlib import Path
from wsgiload.limits import Janitor, Limits
from wsgiload.limits.unlimited import UnlimitedBackend
with Janitor() as janitor, open("log", "wb") as log:
    group = UnlimitedBackend().create(Limits(), "t")
    janitor.watch(group)
    group.spawn([sys.executable, "-c", sys.argv[1]], env={}, cwd=Path("."), log=log)
    janitor.watch(group)
    while not Path("log").read_bytes():
        time.sleep(0.01)
    print(json.dumps(group.pids()), flush=True)
    time.sleep(600)
"""


def test_strict_rejects_limits_that_need_cgroups() -> None:
    with pytest.raises(
        LimitsError, match="the limit on cpus, memory cannot be enforced without cgroups"
    ):
        UnlimitedBackend().create(Limits(cpus=1, memory_bytes=1 << 26), "t")


def test_a_process_tree_is_measured_and_ended(tmp_path: Path) -> None:
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
    assert 4_000_000 < (counters.unreclaimable_bytes or 0) < counters.memory_bytes
    assert counters.page_cache_bytes is None
    assert counters.cpu_usage_ns is not None and counters.nr_periods is None
    assert [session for session, _ in group.remains().sessions] == [process.pid]

    group.kill()
    assert group.pids() == [] and process.returncode == -9

    group.close()
    group.close()
    assert group.oom_kills() is None


def test_a_daemon_that_left_its_session_is_measured_and_ended(
    tmp_path: Path,
) -> None:
    group = UnlimitedBackend().create(Limits(), "t")
    with (tmp_path / "log").open("wb") as log:
        process = group.spawn([sys.executable, "-c", DAEMON], env={}, cwd=tmp_path, log=log)
        while not (tmp_path / "log").read_bytes():
            assert process.poll() is None

    (daemon,) = set(group.pids()) - {process.pid}
    assert os.getsid(daemon) not in (process.pid, os.getsid(0))
    assert psutil.Process(daemon).ppid() == os.getpid(), "this process is not its subreaper"
    assert (group.read_counters().cpu_usage_ns or 0) >= 250_000_000

    group.close()
    assert not psutil.pid_exists(daemon), "the daemon was not reaped"


def test_a_daemon_that_also_cleared_its_variables_is_ended(tmp_path: Path) -> None:
    group = UnlimitedBackend().create(Limits(), "t")
    with (tmp_path / "log").open("wb") as log:
        process = group.spawn([sys.executable, "-c", ESCAPE], env={}, cwd=tmp_path, log=log)
        process.wait(20)
        eventually(lambda: (tmp_path / "log").read_bytes() != b"")

    (daemon,) = group.pids()
    assert psutil.Process(daemon).environ() == {}
    group.close()
    assert not psutil.pid_exists(daemon)


@pytest.mark.parametrize(("daemon", "processes"), [(DAEMON, 2), (ESCAPE, 1)])
def test_the_janitor_finds_a_daemon_by_its_mark(
    tmp_path: Path, daemon: str, processes: int
) -> None:
    environment = {
        "PYTHONPATH": str(Path(wsgiload.__file__).parent.parent),
        "PATH": os.environ["PATH"],
    }
    command = [sys.executable, "-c", ORCHESTRATOR, daemon]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, env=environment, cwd=tmp_path
    ) as orchestrator:
        try:
            assert orchestrator.stdout is not None
            pids = json.loads(orchestrator.stdout.readline())
        finally:
            orchestrator.kill()

    assert len(pids) == processes
    eventually(lambda: not any(is_running(pid) for pid in pids))


def test_unrelated_children_do_not_become_members(tmp_path: Path) -> None:
    group = UnlimitedBackend().create(Limits(), "t")
    with subprocess.Popen(["/bin/sleep", "600"]) as unrelated:
        try:
            with (tmp_path / "log").open("wb") as log:
                process = group.spawn(["/bin/sleep", "600"], env={}, cwd=tmp_path, log=log)
            assert group.pids() == [process.pid]

            group.close()
            assert unrelated.poll() is None
        finally:
            unrelated.kill()


def test_pinning_is_reported_as_not_enforced_if_the_system_cannot_pin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """macOS has neither CPU affinity nor /proc."""
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(unlimited, "CAN_PIN", False)
    monkeypatch.setattr(launch, "CAN_PIN", False)

    group = UnlimitedBackend().create(Limits(server_cpus=(0,)), "t")
    assert group.enforcement.read_back == {
        "affinity": None,
        "effective_cpus": float(os.cpu_count() or 1),
    }
    assert group.enforcement.not_enforced == ("server_cpus",)


def test_a_program_that_does_not_exist_cannot_be_started(tmp_path: Path) -> None:
    group = UnlimitedBackend().create(Limits(), "t")
    with (
        (tmp_path / "log").open("wb") as log,
        pytest.raises(ServerError, match="cannot be started"),
    ):
        group.spawn(["/no/such/program"], env={}, cwd=tmp_path, log=log)
    group.close()
