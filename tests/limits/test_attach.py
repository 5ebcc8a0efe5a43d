"""Somebody else's server is found by its control group or its process, and only looked at."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from wsgiload.errors import UsageError
from wsgiload.limits import Limits
from wsgiload.limits.attach import PROCESSES, AttachedGroup, attach_cgroup, attach_pid

from .real import eventually, new_group, python

if TYPE_CHECKING:
    from conftest import FakeKernel

MIB = 1024 * 1024


def container_of_v2(kernel: FakeKernel) -> Path:
    """A host with one container, and us beside it."""
    kernel.mount_v2("cpu memory pids", group="/user.slice")
    top = kernel.root / "sys/fs/cgroup"
    (top / "docker").mkdir()
    (top / "docker/memory.max").write_text(f"{64 * MIB}\n")
    container = top / "docker/c1"
    container.mkdir()
    contents = {
        "cgroup.controllers": "cpu memory pids",
        "cgroup.procs": "77",
        "cpu.max": "150000 100000",
        "cpu.stat": "usage_usec 7\nuser_usec 5\nsystem_usec 2",
        "memory.max": "max",
        "memory.current": "4096",
        "pids.max": "100",
    }
    for name, text in contents.items():
        (container / name).write_text(text + "\n")
    kernel.write("proc/77/cgroup", "0::/docker/c1")
    return container


@pytest.mark.parametrize("form", ["/docker/c1", "/sys/fs/cgroup/docker/c1", "docker/c1"])
def test_a_group_is_known_by_its_path_or_its_directory(kernel: FakeKernel, form: str) -> None:
    container_of_v2(kernel)
    found = attach_cgroup(form, kernel.root)
    assert (found.source, found.name) == ("cgroup-v2", form)
    counters = found.read_counters()
    assert (counters.cpu_usage_ns, counters.memory_bytes, counters.throttled_ns) == (
        7_000,
        4096,
        None,
    )
    assert found.pids() == [77]
    assert {source.path.parent.name for source in found.sources()} == {"c1"}
    # the memory limit is that of the group above
    limits = {"effective_cpus": 1.5, "effective_memory_bytes": 64 * MIB, "effective_pids": 100}
    assert found.effective_limits == limits
    found.close()


def test_a_process_tells_its_group(kernel: FakeKernel) -> None:
    container_of_v2(kernel)
    found = attach_pid(77, kernel.root)
    assert (found.source, found.name) == ("cgroup-v2", "/docker/c1")
    assert found.read_counters().cpu_usage_ns == 7_000
    found.close()


def test_the_first_version_has_a_group_in_each_hierarchy(kernel: FakeKernel) -> None:
    for name in ("cpu,cpuacct", "memory"):
        top = kernel.mount_v1(name)
        kernel.make(top / "docker-1")
    kernel.mount_v2(
        "", point="/sys/fs/cgroup/unified"
    )  # in which the container has no group of its own
    kernel.write("proc/77/cgroup", "5:memory:/docker-1\n4:cpu,cpuacct:/docker-1\n0::/")
    for found in (attach_pid(77, kernel.root), attach_cgroup("/docker-1", kernel.root)):
        assert found.source == "cgroup-v1"
        counters = found.read_counters()
        assert (counters.cpu_usage_ns, counters.memory_bytes, counters.psi_cpu_some_ns) == (
            7,
            4096,
            None,
        )
        found.close()


def test_what_is_not_there_is_refused_with_a_fix(kernel: FakeKernel) -> None:
    container_of_v2(kernel)
    with pytest.raises(
        UsageError,
        match=r"cgroup /docker/c2 does not exist; take the path from /proc/PID/cgroup",
    ):
        attach_cgroup("/docker/c2", kernel.root)
    with pytest.raises(UsageError, match="process 88888888 does not exist"):
        attach_pid(88888888, kernel.root)


@pytest.mark.parametrize("path", ["/", "/user.slice"])
def test_a_group_that_holds_the_generator_is_refused(kernel: FakeKernel, path: str) -> None:
    container_of_v2(kernel)
    with pytest.raises(
        UsageError, match=f"cgroup {path} also contains this load generator.*--attach-pid"
    ):
        attach_cgroup(path, kernel.root)


def test_a_process_of_our_own_group_is_looked_at_alone_with_its_children() -> None:
    script = "import subprocess; subprocess.run(['/bin/sleep', '600'])"
    with subprocess.Popen([sys.executable, "-c", script]) as server:
        try:
            eventually(lambda: len(psutil.Process(server.pid).children()) == 1)
            found = attach_pid(server.pid)
            assert (found.source, found.name) == (PROCESSES, str(server.pid))
            assert len(found.pids()) == found.read_counters().pids == 2
            assert set(found.effective_limits.values()) == {None}
        finally:
            for process in psutil.Process(server.pid).children():
                process.kill()
            server.kill()
    assert found.read_counters().cpu_usage_ns is None, "it has ended"


@pytest.mark.limits
@pytest.mark.usefixtures("real_limits", "nothing_left")
def test_the_real_kernel(tmp_path: Path) -> None:
    with new_group(Limits(cpus=0.5, memory_bytes=64 * MIB, pids=64), "t_attach") as group:
        process = python(group, "print('inside', flush=True)\nwhile True: pass", tmp_path / "log")
        eventually(lambda: (tmp_path / "log").read_text() == "inside\n")
        found = attach_pid(process.pid)
        assert isinstance(found, AttachedGroup) and found.source == group.enforcement.backend
        assert found.effective_limits == {
            "effective_cpus": 0.5,
            "effective_memory_bytes": 64 * MIB,
            "effective_pids": 64,
        }
        assert (found.read_counters().memory_bytes or 0) > MIB
        # of the first version's directories, one that counts CPU time
        files = [
            path / name
            for path in group.remains().directories
            for name in ("cpuacct.usage", "cpu.max")
        ]
        by_path = attach_cgroup(str(next(path.parent for path in files if path.exists())))
        for one in (found, by_path):
            assert one.pids() == [process.pid]
            before = one.read_counters().cpu_usage_ns or 0
            eventually(
                lambda one=one, before=before: (one.read_counters().cpu_usage_ns or 0) > before
            )
            one.close()
        assert process.poll() is None, "it was only looked at"
