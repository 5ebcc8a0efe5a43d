"""A fake cgroupfs that behaves like the kernel's where the code depends on it, and fixtures for
tests with the real one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from wsgiload.errors import LimitsError
from wsgiload.limits import Limits, files, select_backend, sweep

from ..integration.command import groups_made_by

MIB = 1024 * 1024
V1_FILES = {
    "cpu": {
        "cpu.cfs_quota_us": "-1",
        "cpu.cfs_period_us": "100000",
        "cpu.stat": "nr_periods 0\nnr_throttled 0",
    },
    "cpuacct": {"cpuacct.usage": "7", "cpuacct.usage_user": "5", "cpuacct.usage_sys": "2"},
    "cpuset": {"cpuset.cpus": "", "cpuset.mems": ""},
    "memory": {
        "memory.limit_in_bytes": "9223372036854771712",
        "memory.memsw.limit_in_bytes": "9223372036854771712",
        "memory.usage_in_bytes": "4096",
        "memory.kmem.usage_in_bytes": "7",
        "memory.stat": "rss 1\ntotal_rss 100\ntotal_cache 200\ntotal_shmem 30",
        "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3",
    },
    "pids": {"pids.max": "max", "pids.current": "1"},
    "freezer": {"freezer.state": "THAWED"},
}
V2_CORE = {
    "cgroup.controllers": "",
    "cgroup.subtree_control": "",
    "cgroup.kill": "",
    "cpu.stat": "usage_usec 7\nuser_usec 5\nsystem_usec 2",
    "cpu.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=11\nfull avg10=0 avg60=0 "
    "avg300=0 total=9",
    "memory.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=13",
}
V2_FILES = {
    "cpu": {
        "cpu.max": "max 100000",
        "cpu.stat": "usage_usec 7\nuser_usec 5\nnr_periods 4\nnr_throttled 3\nthrottled_usec 2",
    },
    "memory": {
        "memory.max": "max",
        "memory.swap.max": "max",
        "memory.current": "4096",
        "memory.stat": "anon 100\nfile 200\nkernel 5\nsock 2\nshmem 30\nslab 4",
        "memory.events": "low 0\nhigh 0\nmax 0\noom 1\noom_kill 3",
    },
    "pids": {"pids.max": "max", "pids.current": "1"},
    "cpuset": {"cpuset.cpus": "", "cpuset.cpus.effective": "0-1"},
}


class FakeKernel:
    """A root directory with cgroup mounts; new groups get the files that a kernel would create."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.created: list[Path] = []
        self._mounts: list[str] = []
        self._memberships: list[str] = []
        self._omitted: set[str] = set()
        self.write("proc/swaps", "Filename Type Size Used Priority")

    def write(self, path: str, text: str) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text + "\n")
        return target

    def omit(self, *names: str) -> None:
        """Create new groups without these files, as an older kernel does."""
        self._omitted.update(names)

    def mount_v1(self, controllers: str, group: str = "/", visible: str = "/") -> Path:
        point = f"/sys/fs/cgroup/{controllers}"
        return self._mount(point, visible, group, f"cgroup cgroup rw,{controllers}", controllers)

    def mount_v2(self, controllers: str, group: str = "/", point: str = "/sys/fs/cgroup") -> Path:
        directory = self._mount(point, "/", group, "cgroup2 cgroup2 rw", "")
        (directory / "cgroup.controllers").write_text(controllers + "\n")
        return directory

    def _mount(self, point: str, visible: str, group: str, kind: str, controllers: str) -> Path:
        """Mount a hierarchy with this process in ``group``; return the group's directory."""
        number = len(self._mounts) + 30
        self._mounts.append(f"{number} 1 0:{number} {visible} {point} rw,relatime - {kind}")
        self._memberships.append(f"{number}:{controllers}:{group}")
        self.write("proc/self/mountinfo", "\n".join(self._mounts))
        self.write("proc/self/cgroup", "\n".join(self._memberships))

        relative = group if visible == "/" else group[len(visible) :]
        directory = self.root / point.lstrip("/") / relative.strip("/")
        directory.mkdir(parents=True, exist_ok=True)
        self._fill(directory)
        return directory

    def create_group(self, directory: Path) -> None:
        directory.mkdir()
        self._fill(directory)
        self.created.append(directory)

    def _fill(self, directory: Path) -> None:
        contents = {"cgroup.procs": ""}
        hierarchy = directory.relative_to(self.root / "sys/fs/cgroup").parts[:1]
        names = hierarchy[0].split(",") if hierarchy else []
        if set(names) & set(V1_FILES):
            for name in names:
                contents |= V1_FILES.get(name, {})
        else:
            contents |= V2_CORE
            enabled = directory.parent / "cgroup.subtree_control"
            for name in enabled.read_text().replace("+", "").split() if enabled.exists() else []:
                contents |= V2_FILES[name]

        for name, text in contents.items():
            if name not in self._omitted:
                (directory / name).write_text(text + "\n")


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeKernel:
    fake = FakeKernel(tmp_path)
    monkeypatch.setattr(files, "make_directory", fake.create_group)

    def remove(directory: Path) -> bool:
        shutil.rmtree(directory, ignore_errors=True)
        return True

    monkeypatch.setattr(sweep, "remove_directory", remove)
    return fake


@pytest.fixture(scope="session")
def real_limits() -> Limits:
    """Limits that this machine enforces. Skips the test if it cannot enforce any."""
    limits = Limits(cpus=0.5, memory_bytes=64 * MIB, pids=64)
    try:
        select_backend(limits)
    except LimitsError as error:
        pytest.skip(f"no usable cgroups: {error}")
    return limits


@pytest.fixture
def no_leftover_groups() -> Iterator[None]:
    """Fails a test that leaves a cgroup of this process behind."""
    yield
    directories = [mount.directory for mount in files.find_mounts(Path("/"))]
    assert groups_made_by(os.getpid(), directories) == []
