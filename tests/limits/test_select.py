"""Selection of the backend, rejected limits, and removal of leftover groups."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from wsgiload.errors import LimitsError
from wsgiload.limits import Limits, remove_stale_groups, select_backend

if TYPE_CHECKING:
    from conftest import FakeKernel

REQUESTED = Limits(cpus=0.5, pids=20)


def ended_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_v2_is_selected_if_it_has_the_controllers(kernel: FakeKernel) -> None:
    kernel.mount_v2("cpu memory pids")
    assert select_backend(REQUESTED, kernel.root).name == "cgroup-v2"
    assert not any(path.exists() for path in kernel.created)


def test_v1_is_selected_on_a_hybrid_host(kernel: FakeKernel) -> None:
    for name in ("cpu", "cpuacct", "pids"):
        kernel.mount_v1(name)
    kernel.mount_v2("", point="/sys/fs/cgroup/unified")
    assert select_backend(REQUESTED, kernel.root).name == "cgroup-v1"


def test_strict_rejects_limits_that_no_backend_enforces(kernel: FakeKernel) -> None:
    kernel.mount_v2("memory")
    with pytest.raises(LimitsError, match=r"requested limits \(cpus, pids\) cannot be enforced"):
        select_backend(REQUESTED, kernel.root)


def test_strict_needs_cgroups_only_for_requested_limits(tmp_path: Path) -> None:
    with pytest.raises(LimitsError, match="no usable cgroup hierarchy is mounted"):
        select_backend(REQUESTED, tmp_path)
    assert select_backend(Limits(), tmp_path).name == "none"


def test_best_effort_selects_the_backend_that_enforces_most_limits(kernel: FakeKernel) -> None:
    kernel.mount_v2("memory")
    kernel.mount_v1("pids")
    lenient = Limits(cpus=0.5, pids=20, policy="best-effort")

    backend = select_backend(lenient, kernel.root)
    assert backend.name == "cgroup-v1"

    group = backend.create(lenient, "t")
    assert group.enforcement.not_enforced == ("cpus",)
    group.close()


def test_best_effort_runs_without_limits_if_there_are_no_cgroups(tmp_path: Path) -> None:
    lenient = Limits(cpus=0.5, pids=20, policy="best-effort")
    group = select_backend(lenient, tmp_path).create(lenient, "t")
    assert group.enforcement.backend == "none"
    assert group.enforcement.not_enforced == ("cpus", "pids")


def test_policy_none_enforces_nothing(kernel: FakeKernel) -> None:
    kernel.mount_v2("cpu memory pids")
    limits = Limits(cpus=0.5, policy="none")
    group = select_backend(limits, kernel.root).create(limits, "t")
    assert group.enforcement.backend == "none" and group.enforcement.not_enforced == ()


def test_impossible_limits_are_rejected_before_a_group_is_created(kernel: FakeKernel) -> None:
    kernel.mount_v2("cpu memory pids")
    with pytest.raises(LimitsError, match="4096 CPUs requested"):
        select_backend(Limits(cpus=4096), kernel.root)
    assert kernel.created == []


def test_groups_whose_creator_has_ended_are_removed(kernel: FakeKernel) -> None:
    base = kernel.mount_v2("cpu memory pids")
    ended, running = ended_pid(), os.getpid()
    kernel.write(f"proc/{running}/stat", "")
    stale = base / f"wsgiload-{ended}-0123abcd-gunicorn"
    in_use = base / f"wsgiload-{running}-0123abcd-gunicorn"
    foreign = base / "docker-1"
    for directory in (stale, in_use, foreign):
        directory.mkdir()

    assert remove_stale_groups(kernel.root) == [stale.name]
    assert not stale.exists() and in_use.exists() and foreign.exists()
