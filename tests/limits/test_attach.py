"""Servers that wsgiload did not start are found by their cgroup or process, and only observed."""

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

from .real import eventually, new_group, run_python

if TYPE_CHECKING:
    from conftest import FakeKernel

MIB = 1024 * 1024


def v2_container(kernel: FakeKernel) -> Path:
    """The cgroup of a container on a host with cgroup v2. This process runs outside it."""
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
def test_a_group_can_be_named_by_path_or_directory(kernel: FakeKernel, form: str) -> None:
    v2_container(kernel)

    group = attach_cgroup(form, kernel.root)
    counters = group.read_counters()

    assert (group.source, group.name) == ("cgroup-v2", form)
    assert counters.cpu_usage_ns == 7_000
    assert counters.memory_bytes == 4096
    assert counters.throttled_ns is None
    assert group.pids() == [77]
    assert {source.path.parent.name for source in group.sources()} == {"c1"}
    # The memory limit is set on the parent group.
    limits = {"effective_cpus": 1.5, "effective_memory_bytes": 64 * MIB, "effective_pids": 100}
    assert group.effective_limits == limits
    group.close()


def test_the_group_of_a_process_is_found(kernel: FakeKernel) -> None:
    v2_container(kernel)
    group = attach_pid(77, kernel.root)
    assert (group.source, group.name) == ("cgroup-v2", "/docker/c1")
    assert group.read_counters().cpu_usage_ns == 7_000
    group.close()


def test_cgroup_v1_groups_are_found_in_each_hierarchy(kernel: FakeKernel) -> None:
    for name in ("cpu,cpuacct", "memory"):
        top = kernel.mount_v1(name)
        kernel.create_group(top / "docker-1")
    # The container has no group in the v2 hierarchy.
    kernel.mount_v2("", point="/sys/fs/cgroup/unified")
    kernel.write("proc/77/cgroup", "5:memory:/docker-1\n4:cpu,cpuacct:/docker-1\n0::/")

    for group in (attach_pid(77, kernel.root), attach_cgroup("/docker-1", kernel.root)):
        counters = group.read_counters()
        assert group.source == "cgroup-v1"
        assert counters.cpu_usage_ns == 7
        assert counters.memory_bytes == 4096
        assert counters.psi_cpu_some_ns is None
        group.close()


def test_a_missing_group_or_process_is_rejected_with_a_fix(kernel: FakeKernel) -> None:
    v2_container(kernel)
    with pytest.raises(
        UsageError,
        match=r"cgroup /docker/c2 does not exist; take the path from /proc/PID/cgroup",
    ):
        attach_cgroup("/docker/c2", kernel.root)
    with pytest.raises(UsageError, match="process 88888888 does not exist"):
        attach_pid(88888888, kernel.root)


@pytest.mark.parametrize("path", ["/", "/user.slice"])
def test_a_group_that_contains_the_generator_is_rejected(kernel: FakeKernel, path: str) -> None:
    v2_container(kernel)
    with pytest.raises(
        UsageError, match=f"cgroup {path} also contains this load generator.*--attach-pid"
    ):
        attach_cgroup(path, kernel.root)


def test_a_process_in_our_group_is_observed_with_its_children_only() -> None:
    script = "import subprocess; subprocess.run(['/bin/sleep', '600'])"
    with subprocess.Popen([sys.executable, "-c", script]) as server:
        try:
            eventually(lambda: len(psutil.Process(server.pid).children()) == 1)

            group = attach_pid(server.pid)
            assert (group.source, group.name) == (PROCESSES, str(server.pid))
            assert len(group.pids()) == group.read_counters().pids == 2
            assert set(group.effective_limits.values()) == {None}
        finally:
            for process in psutil.Process(server.pid).children():
                process.kill()
            server.kill()
    assert group.read_counters().cpu_usage_ns is None, "the process has ended"


@pytest.mark.limits
@pytest.mark.usefixtures("real_limits", "no_leftover_groups")
def test_attaching_on_the_real_kernel(tmp_path: Path) -> None:
    with new_group(Limits(cpus=0.5, memory_bytes=64 * MIB, pids=64), "t_attach") as group:
        script = "print('inside', flush=True)\nwhile True: pass"
        process = run_python(group, script, tmp_path / "log")
        eventually(lambda: (tmp_path / "log").read_text() == "inside\n")

        by_pid = attach_pid(process.pid)
        assert isinstance(by_pid, AttachedGroup) and by_pid.source == group.enforcement.backend
        assert by_pid.effective_limits == {
            "effective_cpus": 0.5,
            "effective_memory_bytes": 64 * MIB,
            "effective_pids": 64,
        }
        assert (by_pid.read_counters().memory_bytes or 0) > MIB

        # Under cgroup v1, take the directory that counts CPU time.
        files = [
            path / name
            for path in group.remains().directories
            for name in ("cpuacct.usage", "cpu.max")
        ]
        by_path = attach_cgroup(str(next(path.parent for path in files if path.exists())))
        for attached in (by_pid, by_path):
            assert attached.pids() == [process.pid]
            before_ns = attached.read_counters().cpu_usage_ns or 0
            eventually(
                lambda attached=attached, before_ns=before_ns: (
                    (attached.read_counters().cpu_usage_ns or 0) > before_ns
                )
            )
            attached.close()
        assert process.poll() is None, "closing an attached group must not end its processes"
