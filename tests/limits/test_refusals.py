"""Errors of the kernel (rejected limits, read-only file systems, missing controllers, removed
groups) are reported with a fix."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import wsgiload
from wsgiload.errors import LimitsError
from wsgiload.limits import Limits, files, select_backend
from wsgiload.limits.v1 import V1Backend
from wsgiload.limits.v2 import V2Backend

if TYPE_CHECKING:
    from conftest import FakeKernel

MIB = 1024 * 1024
REQUESTED = Limits(cpus=0.5, memory_bytes=64 * MIB, pids=20)
LENIENT = Limits(cpus=0.5, memory_bytes=64 * MIB, pids=20, policy="best-effort")

# Runs in a separate mount namespace, in which every cgroup file system is read-only.
READ_ONLY = """
import re, subprocess, sys
from pathlib import Path
subprocess.run(["mount", "--make-rprivate", "/"], check=True)
for line in Path("/proc/self/mountinfo").read_text().splitlines():
    before, after = line.split(" - ")
    if after.split()[0] in ("cgroup", "cgroup2"):
        subprocess.run(["mount", "-o", "remount,bind,ro", before.split()[4]], check=True)
from wsgiload.errors import LimitsError
from wsgiload.limits import Limits, select_backend
try:
    print(select_backend(Limits(cpus=0.5)).name)
except LimitsError as error:
    print(error)
lenient = Limits(cpus=0.5, policy="best-effort")
group = select_backend(lenient).create(lenient, "t_read_only")
print(group.enforcement.backend, *group.enforcement.not_enforced)
group.close()
"""


def reject_writes(monkeypatch: pytest.MonkeyPatch, name: str, error: int) -> None:
    """Make every write to files of this name fail with this error number."""
    real_write = files.write_text

    def write(path: Path, value: str) -> None:
        if path.name == name:
            raise OSError(error, os.strerror(error))
        real_write(path, value)

    monkeypatch.setattr(files, "write_text", write)


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("cpu.max", errno.EINVAL, r"the limit on cpus \(cpus: cpu\.max: Invalid argument\)"),
        (
            "memory.max",
            errno.EBUSY,
            r"the limit on memory \(memory: memory\.max: Device or resource busy\)",
        ),
        ("pids.max", errno.EACCES, r"the limit on pids \(pids: pids\.max: Permission denied\)"),
    ],
)
def test_a_limit_rejected_by_cgroup_v2_is_reported(
    kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch, name: str, error: int, message: str
) -> None:
    kernel.mount_v2("cpu memory pids")
    reject_writes(monkeypatch, name, error)

    fix = "; change or omit that limit"
    with pytest.raises(LimitsError, match=message + fix):
        V2Backend(kernel.root).create(REQUESTED, "t")
    assert not any(path.exists() for path in kernel.created), "the group was not removed"

    group = V2Backend(kernel.root).create(LENIENT, "t")
    assert group.enforcement.not_enforced == (name.removesuffix(".max").replace("cpu", "cpus"),)
    group.close()


def test_a_limit_rejected_by_cgroup_v1_is_reported(
    kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    for controllers in ("cpu", "memory", "pids"):
        kernel.mount_v1(controllers)
    reject_writes(monkeypatch, "cpu.cfs_quota_us", errno.EINVAL)

    with pytest.raises(LimitsError, match=r"cpus: cpu\.cfs_quota_us: Invalid argument"):
        V1Backend(kernel.root).create(REQUESTED, "t")
    assert not any(path.exists() for path in kernel.created)


@pytest.mark.parametrize("version", [1, 2])
def test_a_read_only_cgroup_file_system_is_reported(
    kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    if version == 1:
        kernel.mount_v1("cpu,memory,pids")
    else:
        kernel.mount_v2("cpu memory pids")

    def fail(path: Path, value: str = "") -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(files, "write_text", fail)
    monkeypatch.setattr(files, "make_directory", fail)

    message = r"Read-only file system; in a container, start it with docker run --priv"
    with pytest.raises(LimitsError, match=message):
        select_backend(REQUESTED, kernel.root)
    said: list[str] = []
    assert select_backend(LENIENT, kernel.root, said.append).name == "none"
    (line,) = said
    assert line.startswith("limits not enforced: cpus, memory, pids (cannot ")
    assert ". To enforce them: in a container, start it with docker run --privileged" in line


@pytest.mark.parametrize("is_root", [True, False])
def test_without_systemd_a_missing_permission_needs_root_or_another_container(
    kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch, is_root: bool
) -> None:
    kernel.mount_v1("cpu,memory,pids")

    def fail(path: Path) -> None:
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(files, "make_directory", fail)
    monkeypatch.setattr(files, "SYSTEMD_SIGN", "/does/not/exist")
    monkeypatch.setattr(os, "geteuid", lambda: 0 if is_root else 2**31)
    monkeypatch.setattr(sys, "argv", ["/home/u/.venv/bin/wsgiload", "sweep"])
    monkeypatch.setattr(sys, "orig_argv", ["python", "/home/u/.venv/bin/wsgiload", "sweep", "a b"])

    cache = 'WSGILOAD_CACHE_DIR="${WSGILOAD_CACHE_DIR:-$HOME/.cache/wsgiload}"'
    fix = f"sudo {cache} {sys.executable} /home/u/.venv/bin/wsgiload sweep 'a b' --user {2**31}"
    with pytest.raises(LimitsError) as caught:
        select_backend(REQUESTED, kernel.root)
    assert str(caught.value).endswith(f"; {fix}, or use --limits best-effort") is not is_root
    assert ("docker run --privileged" in str(caught.value)) is is_root


@pytest.mark.limits
@pytest.mark.usefixtures("real_limits")
def test_read_only_cgroup_file_systems_of_the_real_kernel_are_reported(tmp_path: Path) -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("only root can mount")
    environment = {
        "PYTHONPATH": str(Path(wsgiload.__file__).parent.parent),
        "PATH": os.environ["PATH"],
    }
    command = ["unshare", "--mount", sys.executable, "-c", READ_ONLY]

    process = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert process.returncode == 0, process.stderr
    error, enforcement = process.stdout.splitlines()
    assert "(cpus) cannot be enforced: " in error
    assert "Read-only file system; in a container" in error
    assert enforcement == "none cpus"


@pytest.mark.parametrize(
    ("missing", "limit"), [("cpu", "cpus"), ("memory", "memory"), ("pids", "pids")]
)
def test_a_missing_controller_is_reported(kernel: FakeKernel, missing: str, limit: str) -> None:
    kernel.mount_v2(" ".join({"cpu", "memory", "pids"} - {missing}), group="/user.slice")

    cause = rf"{limit}: the {missing} controller is not available in "
    with pytest.raises(LimitsError, match=cause + ".*Delegate=cpu cpuset memory pids"):
        V2Backend(kernel.root).create(REQUESTED, "t")

    group = V2Backend(kernel.root).create(LENIENT, "t")
    assert limit in group.enforcement.not_enforced
    group.close()


def test_a_group_removed_before_the_server_starts_is_reported(
    kernel: FakeKernel, tmp_path: Path
) -> None:
    kernel.mount_v2("cpu memory pids")
    group = V2Backend(kernel.root).create(REQUESTED, "t")
    shutil.rmtree(group.remains().directories[0])

    with (
        (tmp_path / "log").open("wb") as log,
        pytest.raises(LimitsError, match=r"disappeared.*Delegate=yes"),
    ):
        group.spawn(["/bin/true"], env={}, cwd=tmp_path, log=log)


@pytest.mark.limits
@pytest.mark.usefixtures("real_limits", "no_leftover_groups")
def test_a_group_removed_during_use_is_reported(tmp_path: Path) -> None:
    group = select_backend(REQUESTED).create(REQUESTED, "t_vanish")
    with (tmp_path / "log").open("wb") as log:
        process = group.spawn(["/bin/true"], env={}, cwd=tmp_path, log=log)
    assert process.wait(30) == 0

    for directory in group.remains().directories:
        directory.rmdir()

    assert group.read_counters().memory_bytes is None, "a missing measurement is None"
    message = r"cgroup .* disappeared; another program manages cgroups on this host; with systemd"
    with pytest.raises(LimitsError, match=message):
        group.close()
    group.close()
