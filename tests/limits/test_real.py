"""On the real kernel, no group and no process survives its orchestrator, however that ends."""

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
from wsgiload.limits import Janitor, LimitedGroup, Limits, remove_stale_groups, select_backend
from wsgiload.limits.v2 import V2Backend, find_mount

from .real import FORK_BOMB, eventually, is_running, run_python

pytestmark = [pytest.mark.limits, pytest.mark.usefixtures("real_limits", "no_leftover_groups")]

ENVIRONMENT = {
    "PYTHONPATH": str(Path(wsgiload.__file__).parent.parent),
    "PATH": os.environ["PATH"],
}
ORCHESTRATOR = """
import json, sys, time
from pathlib import Path
from wsgiload.limits import Janitor, LimitedGroup, Limits, select_backend
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


def test_the_unified_hierarchy_alone_can_contain_and_end_a_process_tree(tmp_path: Path) -> None:
    if find_mount(Path("/")) is None:
        pytest.skip("no cgroup v2 hierarchy is mounted")
    with closing(V2Backend().create(Limits(), "t_unified")) as group:
        run_python(group, FORK_BOMB, tmp_path / "log")
        eventually(lambda: (tmp_path / "log").read_text().startswith("ready"))
        assert len(group.pids()) == 31
        assert (group.read_counters().cpu_usage_ns or 0) > 0
    assert not any(path.exists() for path in group.remains().directories)


@pytest.mark.parametrize("policy", ["strict", "none"])
def test_the_janitor_cleans_up_after_a_killed_orchestrator(tmp_path: Path, policy: str) -> None:
    command = [sys.executable, "-c", ORCHESTRATOR, str(tmp_path / "log"), policy]

    with subprocess.Popen(command, stdout=subprocess.PIPE, env=ENVIRONMENT) as orchestrator:
        try:
            assert orchestrator.stdout is not None
            group = json.loads(orchestrator.stdout.readline())
            assert all(is_running(pid) for pid in group["pids"])
        finally:
            orchestrator.kill()

    eventually(lambda: not any(is_running(pid) for pid in group["pids"]))
    eventually(lambda: not any(Path(path).exists() for path in group["directories"]))


# Moves a process without variables to the root of every hierarchy that permits it.
ESCAPE = """
import os, sys
from contextlib import suppress
from pathlib import Path
root = Path("/sys/fs/cgroup")
if os.fork() == 0:
    for entry in (root / "cgroup.procs", *root.glob("*/cgroup.procs")):
        with suppress(OSError):
            entry.write_text("0")
    print(os.getpid(), flush=True)
    os.execve("/bin/sleep", ["/bin/sleep", "600"], {})
os.wait()
"""


def _escape(group: LimitedGroup, log: Path) -> int:
    run_python(group, ESCAPE, log)
    eventually(lambda: log.read_text().endswith("\n"))
    pid = int(log.read_text())
    if pid in group.pids():
        group.kill()
        pytest.skip("processes cannot leave a control group here")
    return pid


def test_a_process_that_left_its_group_is_named_and_ended(
    tmp_path: Path, real_limits: Limits
) -> None:
    with closing(select_backend(real_limits).create(real_limits, "t_escape")) as group:
        pid = _escape(group, tmp_path / "log")
        eventually(lambda: Path(f"/proc/{pid}/comm").read_text() == "sleep\n")
    assert group.escaped == {pid: "sleep"}
    assert not is_running(pid)


def test_the_janitor_ends_a_process_that_left_its_group(
    tmp_path: Path, real_limits: Limits
) -> None:
    with Janitor() as janitor:
        group = select_backend(real_limits).create(real_limits, "t_escape")
        janitor.watch(group)
        pid = _escape(group, tmp_path / "log")
    assert not is_running(pid)
    with pytest.raises(LimitsError, match="disappeared"):
        group.close()


def test_a_janitor_that_exits_removes_groups_that_were_not_released(real_limits: Limits) -> None:
    with Janitor() as janitor:
        limits = replace(real_limits, cpus=None)
        watched = select_backend(limits).create(limits, "t_watched")
        released = select_backend(limits).create(limits, "t_released")
        janitor.watch(watched)
        janitor.watch(released)
        released.close()
        janitor.release(released)

    assert not any(path.exists() for path in watched.remains().directories)
    with pytest.raises(LimitsError, match="disappeared"):
        watched.close()


def test_groups_of_an_orchestrator_that_crashed_without_janitor_are_removed(tmp_path: Path) -> None:
    script = (
        "import os, sys; from pathlib import Path\n"
        "from wsgiload.limits import Limits, select_backend\n"
        "limits = Limits(pids=50); group = select_backend(limits).create(limits, 't_stale')\n"
        "with open(sys.argv[1], 'wb') as log:\n"
        "    process = group.spawn(['/bin/sleep', '600'], env={}, cwd=Path('/'), log=log)\n"
        "print(process.pid, group.name, flush=True); os.kill(os.getpid(), 9)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "log")]
    orchestrator = subprocess.run(command, stdout=subprocess.PIPE, env=ENVIRONMENT, check=False)
    pid, name = orchestrator.stdout.decode().split()

    assert name in remove_stale_groups()
    eventually(lambda: not is_running(int(pid)))


ORCHESTRATOR_WITH_KILLED_JANITOR = """
import os, signal, sys, time
from pathlib import Path
from wsgiload.limits import Janitor, LimitedGroup, Limits, select_backend
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
def test_a_killed_janitor_is_replaced(tmp_path: Path, policy: str) -> None:
    command = [
        sys.executable,
        "-c",
        ORCHESTRATOR_WITH_KILLED_JANITOR,
        str(tmp_path / "log"),
        policy,
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=ENVIRONMENT) as orchestrator:
        try:
            assert orchestrator.stdout is not None
            pid, *directories = orchestrator.stdout.readline().decode().split()
            assert is_running(int(pid))
        finally:
            orchestrator.kill()

    eventually(lambda: not is_running(int(pid)))
    eventually(lambda: not any(Path(path).exists() for path in directories))


def test_the_next_command_ends_a_leftover_server_that_has_no_group(tmp_path: Path) -> None:
    """A mark in the server's environment identifies its orchestrator, even if neither the
    orchestrator nor a janitor is running."""
    script = (
        "import os, sys; from pathlib import Path\n"
        "from wsgiload.limits import Limits, select_backend\n"
        "limits = Limits(policy='none'); group = select_backend(limits).create(limits, 't_stale')\n"
        "with open(sys.argv[1], 'wb') as log:\n"
        "    process = group.spawn(['/bin/sleep', '600'], env={}, cwd=Path('/'), log=log)\n"
        "print(process.pid, flush=True); os.kill(os.getpid(), 9)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "log")]
    orchestrator = subprocess.run(command, stdout=subprocess.PIPE, env=ENVIRONMENT, check=False)
    pid = int(orchestrator.stdout)

    select_backend(Limits(policy="none"))
    eventually(lambda: not is_running(pid))
