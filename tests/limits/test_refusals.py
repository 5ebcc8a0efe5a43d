"""What happens where the kernel does not do as asked: refused, read-only, missing, vanished; each
with its fix."""

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
ASKED = Limits(cpus=0.5, memory_bytes=64 * MIB, pids=20)
LENIENT = Limits(cpus=0.5, memory_bytes=64 * MIB, pids=20, policy="best-effort")

# Runs in a mount namespace of its own, in which every control-group file system is read-only.
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


def refuse(monkeypatch: pytest.MonkeyPatch, name: str, number: int) -> None:
    """Let the kernel refuse every write to files of this name."""
    really_write = files.write_text

    def write(path: Path, value: str) -> None:
        if path.name == name:
            raise OSError(number, os.strerror(number))
        really_write(path, value)

    monkeypatch.setattr(files, "write_text", write)


@pytest.mark.parametrize(
    ("name", "number", "told"),
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
def test_a_refused_limit(
    kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch, name: str, number: int, told: str
) -> None:
    kernel.mount_v2("cpu memory pids")
    refuse(monkeypatch, name, number)
    with pytest.raises(
        LimitsError, match=told + "; change or omit that limit, or use --limits best-effort"
    ):
        V2Backend(kernel.root).create(ASKED, "t")
    assert not any(path.exists() for path in kernel.made), "a refused group stays behind"
    group = V2Backend(kernel.root).create(LENIENT, "t")
    assert group.enforcement.not_enforced == (name.removesuffix(".max").replace("cpu", "cpus"),)
    group.close()


def test_a_refused_limit_of_the_first_version(
    kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    for controllers in ("cpu", "memory", "pids"):
        kernel.mount_v1(controllers)
    refuse(monkeypatch, "cpu.cfs_quota_us", errno.EINVAL)
    with pytest.raises(LimitsError, match=r"cpus: cpu\.cfs_quota_us: Invalid argument"):
        V1Backend(kernel.root).create(ASKED, "t")
    assert not any(path.exists() for path in kernel.made)


@pytest.mark.parametrize("version", [1, 2])
def test_a_read_only_file_system(
    kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    if version == 1:
        kernel.mount_v1("cpu,memory,pids")
    else:
        kernel.mount_v2("cpu memory pids")

    def refused(path: Path, value: str = "") -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(files, "write_text", refused)
    monkeypatch.setattr(files, "make_directory", refused)
    with pytest.raises(
        LimitsError,
        match=r"Read-only file system; in a container, start it with docker run --priv",
    ):
        select_backend(ASKED, kernel.root)
    assert select_backend(LENIENT, kernel.root).name == "none"


@pytest.mark.limits
@pytest.mark.usefixtures("real_limits")
def test_the_real_kernel_with_read_only_file_systems(tmp_path: Path) -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("only root can mount")
    environment = {
        "PYTHONPATH": str(Path(wsgiload.__file__).parent.parent),
        "PATH": os.environ["PATH"],
    }
    command = ["unshare", "--mount", sys.executable, "-c", READ_ONLY]
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    refusal, lenient = done.stdout.splitlines()
    assert (
        "(cpus) cannot be enforced: " in refusal
        and "Read-only file system; in a container" in refusal
    )
    assert lenient == "none cpus"


@pytest.mark.parametrize(
    ("missing", "limit"), [("cpu", "cpus"), ("memory", "memory"), ("pids", "pids")]
)
def test_a_missing_controller(kernel: FakeKernel, missing: str, limit: str) -> None:
    kernel.mount_v2(" ".join({"cpu", "memory", "pids"} - {missing}), group="/user.slice")
    told = (
        rf"{limit}: the {missing} controller is not available in .*Delegate=cpu cpuset memory pids"
    )
    with pytest.raises(LimitsError, match=told):
        V2Backend(kernel.root).create(ASKED, "t")
    group = V2Backend(kernel.root).create(LENIENT, "t")
    assert limit in group.enforcement.not_enforced
    group.close()


def test_a_group_that_vanished_before_the_start(kernel: FakeKernel, tmp_path: Path) -> None:
    kernel.mount_v2("cpu memory pids")
    group = V2Backend(kernel.root).create(ASKED, "t")
    shutil.rmtree(group.remains().directories[0])
    with (
        (tmp_path / "log").open("wb") as log,
        pytest.raises(LimitsError, match=r"disappeared.*Delegate=yes"),
    ):
        group.spawn(["/bin/true"], env={}, cwd=tmp_path, log=log)


@pytest.mark.limits
@pytest.mark.usefixtures("real_limits", "nothing_left")
def test_a_group_that_vanished_while_it_was_in_use(tmp_path: Path) -> None:
    group = select_backend(ASKED).create(ASKED, "t_vanish")
    with (tmp_path / "log").open("wb") as log:
        process = group.spawn(["/bin/true"], env={}, cwd=tmp_path, log=log)
    assert process.wait(30) == 0
    for directory in group.remains().directories:
        directory.rmdir()
    assert group.read_counters().memory_bytes is None, "a missing measurement is None"
    with pytest.raises(
        LimitsError,
        match=r"cgroup .* disappeared; another program manages cgroups on this host; with systemd",
    ):
        group.close()
    group.close()
