"""cgroup v1 on a fake cgroupfs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from wsgiload.errors import LimitsError
from wsgiload.limits.model import Limits
from wsgiload.limits.v1 import V1Backend

if TYPE_CHECKING:
    from conftest import FakeKernel

MIB = 1024 * 1024
LIMITS = Limits(cpus=0.5, memory_bytes=64 * MIB, pids=20, server_cpus=(0,))


def mount_all(kernel: FakeKernel) -> dict[str, Path]:
    """Mount every v1 hierarchy; returns this process's directory in each."""
    directories = {
        name: kernel.mount_v1(name) for name in ("cpu,cpuacct", "cpuset", "pids", "freezer")
    }
    directories["memory"] = kernel.mount_v1("memory", group="/deeper/one")
    (directories["cpuset"] / "cpuset.cpus").write_text("0-1\n")
    (directories["cpuset"] / "cpuset.mems").write_text("0\n")
    return directories


def test_every_limit_is_set_and_read_back(kernel: FakeKernel) -> None:
    directories = mount_all(kernel)
    group = V1Backend(kernel.root).create(LIMITS, "t")
    assert group.enforcement.backend == "cgroup-v1"
    assert group.enforcement.not_enforced == ()
    assert group.enforcement.read_back == {
        "cpu_quota_us": 50_000,
        "cpu_period_us": 100_000,
        "memory_bytes": 64 * MIB,
        "swap_bytes": 0,
        "pids": 20,
        "cpuset": "0",
        "affinity": "0",
        "effective_cpus": 0.5,
        "effective_memory_bytes": 64 * MIB,
        "effective_pids": 20,
    }
    assert len(kernel.created) == 5  # cpu and cpuacct share one
    assert {path.parent for path in kernel.created} == set(directories.values())
    cpuset = next(path for path in kernel.created if path.parent == directories["cpuset"])
    assert (cpuset / "cpuset.mems").read_text() == "0"

    group.close()
    assert not any(path.exists() for path in kernel.created)


def test_a_hybrid_host_gets_a_parallel_v2_group_for_pressure(kernel: FakeKernel) -> None:
    mount_all(kernel)
    kernel.mount_v2("", point="/sys/fs/cgroup/unified")
    group = V1Backend(kernel.root).create(LIMITS, "t")

    counters = group.read_counters()
    assert counters.psi_cpu_some_ns == 11_000 and counters.psi_memory_some_ns == 13_000
    assert counters.cpu_usage_ns == 7
    assert counters.memory_bytes == 4096
    assert counters.memory_anon_bytes == 100
    assert (counters.unreclaimable_bytes, counters.page_cache_bytes) == (137, 170)
    assert group.oom_kills() == 3
    assert len(group.remains().directories) == 6

    group.close()
    group.close()
    assert group.oom_kills() == 3, "lost on close"


def test_memory_without_kernel_accounting_is_still_known(kernel: FakeKernel) -> None:
    kernel.omit("memory.kmem.usage_in_bytes")
    mount_all(kernel)
    group = V1Backend(kernel.root).create(LIMITS, "t")
    counters = group.read_counters()
    assert (counters.memory_kernel_bytes, counters.unreclaimable_bytes) == (None, 130)
    group.close()


def test_a_server_is_moved_into_every_group_before_it_is_executed(
    kernel: FakeKernel, tmp_path: Path
) -> None:
    mount_all(kernel)
    group = V1Backend(kernel.root).create(LIMITS, "t")
    before = os.sched_getaffinity(0)
    script = (
        "import os; print(os.getsid(0) == os.getpid(), os.sched_getaffinity(0), os.environ['X'])"
    )
    argv = ["python3", "-c", script]

    with (tmp_path / "log").open("wb") as log:
        env = {"PATH": os.environ["PATH"], "X": "a b"}
        process = group.spawn(argv, env=env, cwd=tmp_path, log=log)
        assert process.wait(30) == 0

    assert (tmp_path / "log").read_text() == "True {0} a b\n"
    assert os.sched_getaffinity(0) == before
    for directory in group.remains().directories:
        assert (directory / "cgroup.procs").read_text() == "0\n"
    group.close()


def test_pinning_to_one_core_needs_no_quota(kernel: FakeKernel) -> None:
    mount_all(kernel)
    group = V1Backend(kernel.root).create(Limits(cpus=1, server_cpus=(0,)), "t")
    assert group.enforcement.read_back["cpu_quota_us"] == -1
    assert group.enforcement.read_back["effective_cpus"] == 1.0
    assert group.enforcement.not_enforced == ()
    group.close()


def test_a_smaller_limit_of_an_ancestor_is_reported(kernel: FakeKernel) -> None:
    directories = mount_all(kernel)
    (directories["memory"].parent / "memory.limit_in_bytes").write_text(f"{32 * MIB}\n")
    with pytest.raises(LimitsError, match=f"memory: read back: {32 * MIB}"):
        V1Backend(kernel.root).create(LIMITS, "t")
    assert not any(path.exists() for path in kernel.created)


def test_missing_controllers_are_rejected_or_recorded(kernel: FakeKernel) -> None:
    kernel.mount_v1("cpu,cpuacct")
    backend = V1Backend(kernel.root)
    with pytest.raises(LimitsError, match="cannot enforce the limit on memory, pids"):
        backend.create(LIMITS, "t")

    lenient = Limits(cpus=0.5, memory_bytes=64 * MIB, pids=20, policy="best-effort")
    group = backend.create(lenient, "t")
    assert group.enforcement.not_enforced == ("memory", "pids")
    assert group.enforcement.read_back["memory_bytes"] is None
    group.close()


def test_a_swap_limit_is_needed_only_if_swap_is_on(kernel: FakeKernel) -> None:
    kernel.omit("memory.memsw.limit_in_bytes")
    mount_all(kernel)
    group = V1Backend(kernel.root).create(LIMITS, "t")
    assert group.enforcement.read_back["swap_bytes"] is None
    group.close()

    kernel.write("proc/swaps", "Filename Type Size Used Priority\n/dev/sda2 partition 100 0 -2")
    with pytest.raises(LimitsError, match="swap"):
        V1Backend(kernel.root).create(LIMITS, "t")


def test_a_missing_hierarchy_is_reported(kernel: FakeKernel) -> None:
    with pytest.raises(LimitsError, match="no v1 hierarchy is mounted"):
        V1Backend(kernel.root).create(LIMITS, "t")
