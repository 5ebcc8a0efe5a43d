"""On the real kernel: whatever ends an orchestrator, nothing is left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

import wsgiload
from wsgiload.errors import LimitsError
from wsgiload.limits import Janitor, Limits, remove_stale_groups, select_backend
from wsgiload.limits.v2 import V2Backend, find_mount

from .real import FORK_BOMB, eventually, python, runs

pytestmark = [pytest.mark.limits, pytest.mark.usefixtures("real_limits", "nothing_left")]

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
    environment = {
        "PYTHONPATH": str(Path(wsgiload.__file__).parent.parent),
        "PATH": os.environ["PATH"],
    }
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
    with pytest.raises(LimitsError, match="disappeared"):
        kept.close()


def test_groups_of_a_crash_without_janitor_are_found_later(tmp_path: Path) -> None:
    script = (
        "from pathlib import Path; from wsgiload.limits import Limits, select_backend; import "
        "os, sys\n"
        "limits = Limits(pids=50); group = select_backend(limits).create(limits, 't_stale')\n"
        "with open(sys.argv[1], 'wb') as log:\n"
        "    process = group.spawn(['/bin/sleep', '600'], env={}, cwd=Path('/'), log=log)\n"
        "print(process.pid, group.name, flush=True); os.kill(os.getpid(), 9)\n"
    )
    environment = {
        "PYTHONPATH": str(Path(wsgiload.__file__).parent.parent),
        "PATH": os.environ["PATH"],
    }
    command = [sys.executable, "-c", script, str(tmp_path / "log")]
    done = subprocess.run(command, stdout=subprocess.PIPE, env=environment, check=False)
    pid, name = done.stdout.decode().split()
    assert name in remove_stale_groups()
    eventually(lambda: not runs(int(pid)))


REPLACED = """
import os, signal, sys, time
from pathlib import Path
from wsgiload.limits import Janitor, Limits, select_backend
limits = Limits(policy=sys.argv[2], pids=50 if sys.argv[2] == "strict" else None)
with Janitor() as janitor, open(sys.argv[1], "wb") as log:
    first = janitor._process
    group = select_backend(limits).create(limits, "t_replaced")
    os.kill(first.pid, signal.SIGKILL)
    os.waitid(os.P_PID, first.pid, os.WEXITED | os.WNOWAIT)
    janitor.watch(group)
    process = group.spawn(["/bin/sleep", "600"], env={}, cwd=Path("/"), log=log)
    janitor.watch(group)
    print(process.pid, *group.remains().directories, flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("policy", ["strict", "none"])
def test_a_janitor_that_was_killed_is_replaced(tmp_path: Path, policy: str) -> None:
    environment = {
        "PYTHONPATH": str(Path(wsgiload.__file__).parent.parent),
        "PATH": os.environ["PATH"],
    }
    command = [sys.executable, "-c", REPLACED, str(tmp_path / "log"), policy]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as orchestrator:
        try:
            assert orchestrator.stdout is not None
            pid, *directories = orchestrator.stdout.readline().decode().split()
            assert runs(int(pid))
        finally:
            orchestrator.kill()
    eventually(lambda: not runs(int(pid)))
    eventually(lambda: not any(Path(path).exists() for path in directories))


def test_a_server_without_a_group_is_ended_by_the_next_command(tmp_path: Path) -> None:
    """Where neither its wsgiload nor a janitor is left, its mark tells whose it was."""
    script = (
        "from pathlib import Path; from wsgiload.limits import Limits, select_backend; import "
        "os, sys\n"
        "limits = Limits(policy='none'); group = select_backend(limits).create(limits, 't_stale')\n"
        "with open(sys.argv[1], 'wb') as log:\n"
        "    process = group.spawn(['/bin/sleep', '600'], env={}, cwd=Path('/'), log=log)\n"
        "print(process.pid, flush=True); os.kill(os.getpid(), 9)\n"
    )
    environment = {
        "PYTHONPATH": str(Path(wsgiload.__file__).parent.parent),
        "PATH": os.environ["PATH"],
    }
    command = [sys.executable, "-c", script, str(tmp_path / "log")]
    done = subprocess.run(command, stdout=subprocess.PIPE, env=environment, check=False)
    pid = int(done.stdout)
    select_backend(Limits(policy="none"))
    eventually(lambda: not runs(pid))
