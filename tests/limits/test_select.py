"""Which backend is taken, what is refused, and what crashed runs leave."""

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

ASKED = Limits(cpus=0.5, pids=20)


def ended_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_takes_v2_where_it_has_controllers(kernel: FakeKernel) -> None:
    kernel.mount_v2("cpu memory pids")
    assert select_backend(ASKED, kernel.root).name == "cgroup-v2"
    assert not any(path.exists() for path in kernel.made)


def test_takes_v1_on_a_hybrid_host(kernel: FakeKernel) -> None:
    for name in ("cpu", "cpuacct", "pids"):
        kernel.mount_v1(name)
    kernel.mount_v2("", point="/sys/fs/cgroup/unified")
    assert select_backend(ASKED, kernel.root).name == "cgroup-v1"


def test_strict_refuses_what_no_backend_holds(kernel: FakeKernel) -> None:
    kernel.mount_v2("memory")
    with pytest.raises(LimitsError, match=r"requested limits \(cpus, pids\) cannot be enforced"):
        select_backend(ASKED, kernel.root)


def test_strict_without_any_control_groups(tmp_path: Path) -> None:
    with pytest.raises(LimitsError, match="no usable cgroup hierarchy is mounted"):
        select_backend(ASKED, tmp_path)
    assert select_backend(Limits(), tmp_path).name == "none"


def test_best_effort_takes_what_holds_most(kernel: FakeKernel) -> None:
    kernel.mount_v2("memory")
    kernel.mount_v1("pids")
    lenient = Limits(cpus=0.5, pids=20, policy="best-effort")
    backend = select_backend(lenient, kernel.root)
    assert backend.name == "cgroup-v1"
    group = backend.create(lenient, "t")
    assert group.enforcement.not_enforced == ("cpus",)
    group.close()


def test_best_effort_ends_at_no_limits(tmp_path: Path) -> None:
    lenient = Limits(cpus=0.5, pids=20, policy="best-effort")
    group = select_backend(lenient, tmp_path).create(lenient, "t")
    assert group.enforcement.backend == "none"
    assert group.enforcement.not_enforced == ("cpus", "pids")


def test_policy_none_asks_for_nothing(kernel: FakeKernel) -> None:
    kernel.mount_v2("cpu memory pids")
    limits = Limits(cpus=0.5, policy="none")
    group = select_backend(limits, kernel.root).create(limits, "t")
    assert group.enforcement.backend == "none" and group.enforcement.not_enforced == ()


def test_what_is_impossible_is_refused_before_anything_is_tried(kernel: FakeKernel) -> None:
    kernel.mount_v2("cpu memory pids")
    with pytest.raises(LimitsError, match="4096 CPUs requested"):
        select_backend(Limits(cpus=4096), kernel.root)
    assert kernel.made == []


def test_groups_of_dead_makers_are_removed(kernel: FakeKernel) -> None:
    own = kernel.mount_v2("cpu memory pids")
    dead, alive = ended_pid(), os.getpid()
    kernel.write(f"proc/{alive}/stat", "")
    stale = own / f"wsgiload-{dead}-0123abcd-gunicorn"
    in_use = own / f"wsgiload-{alive}-0123abcd-gunicorn"
    foreign = own / "docker-1"
    for directory in (stale, in_use, foreign):
        directory.mkdir()
    assert remove_stale_groups(kernel.root) == [stale.name]
    assert not stale.exists() and in_use.exists() and foreign.exists()
