"""cgroup v2 on a fake cgroupfs."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from wsgiload.errors import LimitsError
from wsgiload.limits import files, v2
from wsgiload.limits.model import Limits
from wsgiload.limits.v2 import V2Backend

if TYPE_CHECKING:
    from conftest import FakeKernel

MIB = 1024 * 1024
LIMITS = Limits(cpus=0.5, memory_bytes=64 * MIB, pids=20, server_cpus=(0,))


def test_every_limit_is_set_and_read_back(kernel: FakeKernel) -> None:
    base = kernel.mount_v2("cpuset cpu io memory pids", group="/user.slice/scope")
    group = V2Backend(kernel.root).create(LIMITS, "t")
    (directory,) = group.remains().directories
    assert directory.parent == base
    assert (base / "cgroup.subtree_control").read_text() == "+cpu +memory +pids +cpuset"
    assert (directory / "cpu.max").read_text() == "50000 100000"
    assert (directory / "cpuset.cpus").read_text() == "0"
    assert group.enforcement.not_enforced == ()
    expected = {"cpu_quota_us": 50_000, "memory_bytes": 64 * MIB, "swap_bytes": 0, "pids": 20}
    assert expected.items() <= group.enforcement.read_back.items()
    assert group.enforcement.read_back["effective_cpus"] == 0.5

    counters = group.read_counters()
    assert counters.cpu_usage_ns == 7_000
    assert counters.cpu_user_ns == 5_000
    assert counters.throttled_ns == 2_000
    assert (counters.nr_periods, counters.nr_throttled, counters.oom_kill) == (4, 3, 3)
    assert counters.psi_cpu_full_ns == 9_000
    assert (counters.memory_anon_bytes, counters.memory_kernel_bytes) == (100, 7)
    assert (counters.unreclaimable_bytes, counters.page_cache_bytes) == (137, 170)

    group.close()
    assert not directory.exists()


def test_files_that_an_old_kernel_lacks_are_optional(kernel: FakeKernel) -> None:
    kernel.omit("memory.stat", "cgroup.kill", "cpu.pressure", "memory.pressure")
    kernel.mount_v2("cpu memory pids")
    group = V2Backend(kernel.root).create(LIMITS, "t")
    assert group.read_counters().psi_cpu_some_ns is None
    assert group.enforcement.read_back["cpuset"] is None
    assert group.enforcement.not_enforced == (), "the server is pinned by affinity"
    group.close()


def test_kernel_memory_is_a_sum_before_linux_5_18(kernel: FakeKernel) -> None:
    kernel.mount_v2("cpu memory pids")
    group = V2Backend(kernel.root).create(LIMITS, "t")
    (directory,) = group.remains().directories
    parts = "slab 4\nkernel_stack 8\npagetables 16\npercpu 32\nsock 64"
    (directory / "memory.stat").write_text(f"anon 100\nfile 200\nshmem 30\n{parts}\n")
    assert group.read_counters().memory_kernel_bytes == 124
    group.close()


def test_a_controller_that_was_not_delegated_is_reported(kernel: FakeKernel) -> None:
    kernel.mount_v2("memory pids", group="/user.slice")
    with pytest.raises(LimitsError, match="the cpu controller is not available"):
        V2Backend(kernel.root).create(LIMITS, "t")

    lenient = Limits(cpus=0.5, memory_bytes=64 * MIB, policy="best-effort")
    group = V2Backend(kernel.root).create(lenient, "t")
    assert group.enforcement.not_enforced == ("cpus",)
    group.close()


def test_a_smaller_limit_of_an_ancestor_is_reported(kernel: FakeKernel) -> None:
    base = kernel.mount_v2("cpu memory pids", group="/a/b")
    (base / "cpu.max").write_text("25000 100000\n")
    with pytest.raises(LimitsError, match=r"cpus: read back: 0\.25"):
        V2Backend(kernel.root).create(LIMITS, "t")


def test_without_delegation_the_error_has_a_fix(
    kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel.mount_v2("cpu memory pids", group="/user.slice")

    def denied(path: Path, value: str = "") -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(files, "make_directory", denied)
    monkeypatch.setattr(files, "SYSTEMD_SIGN", str(kernel.root))
    with pytest.raises(LimitsError, match="systemd-run --user --scope -p Delegate=yes"):
        V2Backend(kernel.root).create(LIMITS, "t")

    monkeypatch.setattr(files, "write_text", denied)
    with pytest.raises(LimitsError, match="cannot enable controllers"):
        V2Backend(kernel.root).create(LIMITS, "t")


def test_our_processes_are_moved_to_a_leaf_if_they_prevent_delegation(
    kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = kernel.mount_v2("cpu memory pids", group="/scope")
    unrelated, child, me = 5, 6, os.getpid()
    (base / "cgroup.procs").write_text(f"{unrelated}\n{child}\n{me}\n")
    kernel.write(f"proc/{child}/stat", f"{child} (a) b) S {me} 1 1")
    kernel.write(f"proc/{unrelated}/stat", f"{unrelated} (sh) S 1 1 1")
    kernel.write(f"proc/{me}/stat", f"{me} (python) S 1 1 1")

    moved: list[int] = []
    exit_handlers: list[tuple[object, ...]] = []
    real_write = files.write_text

    def busy_until_moved(path: Path, value: str) -> None:
        if path.name == "cgroup.procs":
            moved.append(int(value))
        elif path.name == "cgroup.subtree_control" and not moved:
            raise OSError(errno.EBUSY, "busy")
        else:
            real_write(path, value)

    monkeypatch.setattr(files, "write_text", busy_until_moved)
    monkeypatch.setattr(v2.atexit, "register", lambda *call: exit_handlers.append(call))

    group = V2Backend(kernel.root).create(LIMITS, "t")
    assert moved == [child, me], "outside a container, unrelated processes must not be moved"
    assert len(exit_handlers) == 1
    group.close()

    # From inside the leaf, the base group is still found.
    kernel.write("proc/self/cgroup", f"0::/scope/wsgiload-orchestrator-{me}")
    mount = v2.find_mount(kernel.root)
    assert mount is not None and v2.own_base(kernel.root, mount) == base


def test_a_missing_hierarchy_is_reported(kernel: FakeKernel) -> None:
    with pytest.raises(LimitsError, match="no cgroup v2 hierarchy is mounted"):
        V2Backend(kernel.root).create(LIMITS, "t")
