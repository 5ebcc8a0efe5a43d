"""Parsing of kernel files, with text from real kernels."""

from __future__ import annotations

from pathlib import Path

import pytest

from wsgiload.limits import files
from wsgiload.limits.files import CounterFiles, CounterSource, Mount
from wsgiload.limits.model import Counters


def test_cgroup_mounts_and_memberships_are_read(tmp_path: Path) -> None:
    proc = tmp_path / "proc/self"
    proc.mkdir(parents=True)
    (proc / "mountinfo").write_text(
        "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
        "32 31 0:29 /docker/ab /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup "
        "rw,cpu,cpuacct\n"
        "33 31 0:30 / /mnt/with\\040space rw - cgroup2 cgroup2 rw,nsdelegate\n"
    )
    (proc / "cgroup").write_text("2:cpu,cpuacct:/docker/ab/x\n1:name=systemd:/\n0::/user.slice\n")

    first, second = files.find_mounts(tmp_path)
    assert first.directory == tmp_path / "sys/fs/cgroup/cpu,cpuacct"
    assert first.version == 1 and {"cpu", "cpuacct"} <= first.controllers
    assert second.version == 2 and second.directory == tmp_path / "mnt/with space"

    memberships = files.own_memberships(tmp_path)
    assert memberships == {
        "cpu": "/docker/ab/x",
        "cpuacct": "/docker/ab/x",
        "name=systemd": "/",
        "": "/user.slice",
    }
    assert files.own_directory(first, memberships["cpu"]) == first.directory / "x"
    assert files.own_directory(second, memberships[""]) == second.directory / "user.slice"


def test_the_mount_is_used_if_the_group_is_not_visible() -> None:
    mount = Mount(Path("/cg"), "/docker/ab", 1, frozenset())
    assert files.own_directory(mount, "/docker/abc") == Path("/cg")
    assert files.own_directory(mount, "/docker/ab") == Path("/cg")


def test_without_proc_there_are_no_mounts_no_groups_and_no_swap(tmp_path: Path) -> None:
    assert files.find_mounts(tmp_path) == []
    assert files.own_memberships(tmp_path) == {}
    assert not files.swap_is_on(tmp_path)


def test_pressure_is_converted_to_nanoseconds() -> None:
    text = (
        "some avg10=1.53 avg60=0.44 avg300=0.10 total=508146\nfull avg10=0.00 avg60=0.00 "
        "avg300=0.00 total=7"
    )
    assert files.CPU_PRESSURE(text) == {"psi_cpu_some_ns": 508_146_000, "psi_cpu_full_ns": 7_000}
    assert files.CPU_PRESSURE(text.splitlines()[0]) == {"psi_cpu_some_ns": 508_146_000}


def test_ancestors_end_at_the_top_directory() -> None:
    assert list(files.ancestors(Path("/a/b/c"), Path("/a"))) == [
        Path("/a/b/c"),
        Path("/a/b"),
        Path("/a"),
    ]
    assert list(files.ancestors(Path("/x"), Path("/a"))) == [Path("/x")]


def test_writing_does_not_create_a_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        files.write_text(tmp_path / "cpu.max", "1")


def test_counters_of_missing_or_malformed_files_are_none(tmp_path: Path) -> None:
    (tmp_path / "usage").write_text("12\n")
    (tmp_path / "malformed").write_text("not a number\n")
    counter_files = CounterFiles(
        [
            CounterSource(tmp_path / "usage", files.single("cpu_usage_ns")),
            CounterSource(tmp_path / "malformed", files.single("memory_bytes")),
            CounterSource(tmp_path / "missing", files.single("pids")),
        ]
    )

    assert counter_files.read() == Counters(cpu_usage_ns=12)
    (tmp_path / "usage").write_text("15\n")
    assert counter_files.read().cpu_usage_ns == 15

    counter_files.close()
    counter_files.close()
    assert counter_files.read() == Counters()


def test_each_read_includes_files_with_a_long_spacing(tmp_path: Path) -> None:
    """Only a sampler spaces its reads."""
    (tmp_path / "memory.stat").write_text("anon 5\n")
    parse = files.renamed({"anon": "memory_anon_bytes"})
    source = CounterSource(tmp_path / "memory.stat", parse, 3_600_000_000_000)
    counter_files = CounterFiles([source])
    assert [counter_files.read().memory_anon_bytes for _ in range(2)] == [5, 5]
    counter_files.close()
