"""The run directory: files and columns of the contract, intact at every moment."""

from __future__ import annotations

import csv
import errno
import json
import os
import re
import shutil
import stat
import threading
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from hdrh.histogram import HdrHistogram

from wsgiload.documents.codec import read, to_plain
from wsgiload.documents.load_report import LoadReport
from wsgiload.documents.run_info import HostFacts, RunInfo
from wsgiload.documents.summary import Summary
from wsgiload.errors import UsageError
from wsgiload.limits.model import Counters
from wsgiload.results.integrity import damages
from wsgiload.results.store import RunDirectory
from wsgiload.sampling.sampler import Sample

from .filled import filled_cell, filled_summary
from .test_interval_log import read_all, three_second_load

RESOURCE_COLUMNS = (
    "cell,t_ns,cpu_usage_ns,cpu_user_ns,cpu_system_ns,nr_periods,nr_throttled,throttled_ns,memory_bytes,"
    "memory_anon_bytes,memory_file_bytes,oom_kill,pids,psi_cpu_some_ns,psi_cpu_full_ns,psi_memory_some_ns,"
    "listen_queue,listen_drops,steal_ns,psi_memory_full_ns,psi_io_some_ns,psi_io_full_ns,memory_high,run_queue_wait_ns,"
    "host_busy_ns,memory_shared_bytes,memory_kernel_bytes,late_ns,width_ns"
)
INTERVAL_COLUMNS = "cell,start_ns,length_ns,scheduled,sent,ok,failed,p50_ns,p99_ns,max_ns"


def measured_load() -> LoadReport:
    load = three_second_load()
    intervals = [
        msgspec.structs.replace(one, scheduled=3, sent=3, ok=3, p50_ns=5) for one in load.intervals
    ]
    return msgspec.structs.replace(load, intervals=tuple(intervals))


def run_info(directory: RunDirectory) -> RunInfo:
    return RunInfo(
        schema_version=1,
        started_utc=directory.started,
        status="complete",
        plan=msgspec.Raw(b"{}"),
        host=HostFacts(),
    )


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path / "runs", "hello", is_resumable=True)


def test_the_directory_name_has_a_time_a_name_and_four_digits(
    directory: RunDirectory, tmp_path: Path
) -> None:
    assert directory.path.parent == tmp_path / "runs"
    assert directory.path.is_absolute()
    assert re.fullmatch(r"[0-9]{8}T[0-9]{6}Z-hello-[0-9a-f]{4}", directory.path.name)


def test_directories_of_the_same_second_do_not_collide(tmp_path: Path) -> None:
    paths = {RunDirectory(tmp_path, "hello").path for _ in range(5)}
    assert len(paths) == 5


def test_a_directory_that_cannot_be_created_is_an_error_with_a_fix(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        UsageError,
        match=r"cannot create the run directory .*/file/.*; choose another directory with --out",
    ):
        RunDirectory(tmp_path / "file", "hello")


def test_both_tables_start_with_the_columns_of_the_contract(directory: RunDirectory) -> None:
    assert (directory.path / "resources.csv").read_text() == RESOURCE_COLUMNS + "\n"
    assert (directory.path / "intervals.csv").read_text() == INTERVAL_COLUMNS + "\n"


def test_a_cell_appends_its_rows_and_unknown_values_are_empty(directory: RunDirectory) -> None:
    samples = [
        Sample(10, 0, Counters(cpu_usage_ns=7, memory_bytes=4096)),
        Sample(20, 0, Counters()),
    ]
    directory.write_cell("a@1#1", measured_load(), samples)
    directory.write_cell("b@1#1", None, samples[:1])
    rows = list(csv.DictReader((directory.path / "resources.csv").read_text().splitlines()))

    assert [(row["cell"], row["t_ns"], row["cpu_usage_ns"]) for row in rows] == [
        ("a@1#1", "10", "7"),
        ("a@1#1", "20", ""),
        ("b@1#1", "10", "7"),
    ]
    assert {row["steal_ns"] for row in rows} == {""}

    intervals = list(csv.DictReader((directory.path / "intervals.csv").read_text().splitlines()))
    assert [row["cell"] for row in intervals] == ["a@1#1"] * 3
    assert [row["max_ns"] for row in intervals] == ["3000000", "", "80000000"]
    assert {row["p99_ns"] for row in intervals} == {""}


def test_a_cell_without_a_load_has_no_load_file(directory: RunDirectory) -> None:
    directory.write_cell("a@1#1", measured_load(), [])
    directory.write_cell("b@1#1", None, [])
    assert [path.name for path in (directory.path / "load").iterdir()] == ["a@1#1.json"]
    assert read(LoadReport, directory.path / "load" / "a@1#1.json") == measured_load()


def test_the_interval_log_has_one_header_and_a_tag_per_cell(directory: RunDirectory) -> None:
    for cell in ("a@1#1", "b@1#1"):
        directory.write_cell(cell, measured_load(), [])
    text = (directory.path / "latency.hlog").read_text()
    assert text.count("[Histogram log format version 1.3]") == 1
    assert text.count("StartTimestamp") == 1
    intervals: list[HdrHistogram] = read_all(str(directory.path / "latency.hlog"))
    assert [interval.get_tag() for interval in intervals] == ["a@1#1", "a@1#1", "b@1#1", "b@1#1"]
    assert [interval.get_total_count() for interval in intervals] == [3, 2, 3, 2]


def test_the_percentile_text_has_a_section_per_cell(directory: RunDirectory) -> None:
    for cell in ("a@1#1", "b@1#1"):
        directory.write_cell(cell, measured_load(), [])
    text = (directory.path / "latency.hgrm").read_text()
    assert [line for line in text.splitlines() if line.startswith("#[") and "@" in line] == [
        "#[a@1#1]",
        "#[b@1#1]",
    ]


def test_run_and_summary_contain_their_schema_version(directory: RunDirectory) -> None:
    directory.write_run(run_info(directory))
    summary = filled_summary({}, [filled_cell(id="a@1#1")])
    directory.write_summary(summary)
    run = json.loads((directory.path / "run.json").read_text())

    assert (run["schema_version"], run["status"]) == (1, "complete")
    assert re.fullmatch(r"[0-9-]{10}T[0-9:]{8}\+00:00", run["started_utc"])

    stored = json.loads((directory.path / "summary.json").read_text())
    assert stored["schema_version"] == 1
    assert stored == to_plain(summary)
    assert read(Summary, directory.path / "summary.json") == summary


def test_a_reader_never_sees_a_partial_summary(directory: RunDirectory) -> None:
    """A summary is replaced atomically: a concurrent reader sees the old or the new one."""
    directory.write_summary(filled_summary({"name": "x" * 100_000}, [], seed=0))
    stop, broken, seeds = threading.Event(), [], set()

    def read() -> None:
        while not stop.is_set():
            text = (directory.path / "summary.json").read_text()
            try:
                seeds.add(json.loads(text)["seed"])
            except ValueError:
                broken.append(text)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(1, 100):
        directory.write_summary(filled_summary({"name": "x" * 100_000}, [], seed=number))
    stop.set()
    reader.join()
    assert broken == []
    assert seeds
    assert not list(directory.path.glob("*.unfinished"))


def test_files_and_directories_are_synced_before_the_next_cell(
    directory: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every file is synced after its last byte, and every directory that got a new entry."""
    synced: dict[int, int] = {}  # the size of each inode, because files are renamed later
    real_fsync = os.fsync

    def fsync(descriptor: int) -> None:
        status = os.fstat(descriptor)
        synced[status.st_ino] = status.st_size
        real_fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    directory.write_cell("a@1#1", measured_load(), [Sample(1, 0, Counters())])
    directory.write_summary(filled_summary({}, [], seed=0))
    names = (
        "intervals.csv",
        "resources.csv",
        "latency.hlog",
        "latency.hgrm",
        "load/a@1#1.json",
        "summary.json",
    )
    for path in (directory.path / name for name in names):
        assert synced[path.stat().st_ino] == path.stat().st_size
    for folder in (directory.path, directory.path / "load"):
        assert folder.stat().st_ino in synced


def test_a_server_log_is_named_after_its_cell(directory: RunDirectory) -> None:
    assert directory.server_log("a@1#1") == directory.path / "server" / "a@1#1.log"
    assert directory.server_log("a@1#1").parent.is_dir()


def test_only_the_owner_can_read_the_directory(directory: RunDirectory) -> None:
    assert stat.S_IMODE(directory.path.stat().st_mode) == 0o700


def test_the_manifest_has_the_checksum_of_every_file(directory: RunDirectory) -> None:
    directory.server_log("a@1#1").write_text("started\n")
    directory.write_cell("a@1#1", measured_load(), [Sample(10, 0, Counters(cpu_usage_ns=7))])
    directory.write_summary(filled_summary({}, [filled_cell(id="a@1#1")]))
    directory.write_run(run_info(directory))
    listed = json.loads((directory.path / "manifest.json").read_text())["files"]
    files = {str(path.relative_to(directory.path)) for path in directory.path.rglob("*.*")}
    assert listed.keys() == files - {"manifest.json"}
    assert damages(directory.path) == []


@pytest.mark.parametrize("name", ["intervals.csv", "latency.hlog", "server/a@1#1.log"])
def test_a_truncated_file_is_reported(directory: RunDirectory, name: str) -> None:
    directory.server_log("a@1#1").write_text("started\nserving\n")
    directory.write_cell("a@1#1", measured_load(), [])
    directory.write_run(run_info(directory))
    path = directory.path / name
    path.write_bytes(path.read_bytes()[:-4])
    [damage] = damages(directory.path)
    assert damage.startswith((f"{path} is truncated to ", f"{path} is damaged"))


def test_an_unfinished_cell_is_not_damage(directory: RunDirectory) -> None:
    directory.write_run(run_info(directory))
    directory.write_cell("a@1#1", measured_load(), [])
    assert damages(directory.path) == []


class Killed(BaseException):
    """Stands in for SIGKILL: nothing handles it."""


@pytest.mark.parametrize("writes", range(1, 7))
def test_a_kill_while_writing_leaves_no_damage(
    directory: RunDirectory, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    """Killed before one of the renames that replace a cell, the summary and the manifest."""
    directory.write_cell("a@1#1", measured_load(), [])
    directory.write_summary(filled_summary({}, [filled_cell(id="a@1#1")]))
    directory.write_run(run_info(directory))
    remaining, rename = iter(range(writes)), Path.rename

    def rename_or_die(path: Path, target: Path) -> Path:
        if next(remaining, None) is None:
            raise Killed
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", rename_or_die)
    with suppress(Killed):
        directory.write_cell("b@1#1", measured_load(), [])
        directory.write_summary(
            filled_summary({}, [filled_cell(id="a@1#1"), filled_cell(id="b@1#1")])
        )
        directory.write_run(run_info(directory))
    assert damages(directory.path) == []


def test_a_kill_while_reopening_leaves_no_damage(
    directory: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory.write_cell("a@1#1", measured_load(), [])
    directory.write_cell("b@1#1", measured_load(), [])
    directory.write_summary(filled_summary({}, [filled_cell(id="a@1#1")]))
    directory.write_run(run_info(directory))

    def die(directory: RunDirectory) -> None:
        raise Killed

    monkeypatch.setattr(RunDirectory, "_take_digests", die)
    with suppress(Killed):
        RunDirectory.reopen(directory.path, {"a@1#1"})
    assert damages(directory.path) == []


def test_a_reopened_run_continues_its_manifest(directory: RunDirectory) -> None:
    directory.write_cell("a@1#1", measured_load(), [])
    directory.write_cell("b@1#1", measured_load(), [])
    directory.write_run(run_info(directory))
    reopened = RunDirectory.reopen(directory.path, {"a@1#1"})
    reopened.write_cell("c@1#1", measured_load(), [])
    reopened.write_run(run_info(directory))
    assert damages(directory.path) == []
    assert "load/b@1#1.json" not in (directory.path / "manifest.json").read_text()


def test_a_full_disk_names_the_file_and_leaves_complete_lines(
    directory: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (directory.path / "resources.csv").read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    message = r"cannot write .*resources.csv: No space left on device; .*, then start a new run$"
    with pytest.raises(UsageError, match=message):
        directory.write_cell("a@1#1", None, [Sample(10, 0, Counters())])
    (directory.path / "run.json").touch()  # a run that can be resumed
    message = r"cannot write .*resources.csv: No space left on device; every cell before .*--resume"
    with pytest.raises(UsageError, match=message):
        directory.write_cell("a@1#1", None, [Sample(10, 0, Counters())])
    with pytest.raises(UsageError, match=r"cannot write .*run.json: No space left"):
        directory.write_run(run_info(directory))
    monkeypatch.undo()
    assert (directory.path / "resources.csv").read_bytes() == before
    assert not list(directory.path.glob("*.unfinished"))


def test_a_deleted_directory_is_not_called_a_full_disk(directory: RunDirectory) -> None:
    shutil.rmtree(directory.path)
    with pytest.raises(UsageError, match=r"was deleted or moved during the run; start a new run$"):
        directory.write_cell("a@1#1", None, [Sample(10, 0, Counters())])


@pytest.mark.parametrize(
    ("is_resumable", "advice"),
    [
        (True, r"continue with `.*wsgiload sweep --resume .*`$"),
        (False, r"free disk space, then start a new run$"),
    ],
)
def test_only_a_sweep_that_lacks_disk_space_can_be_continued(
    is_resumable: bool, advice: str, tmp_path: Path
) -> None:
    directory = RunDirectory(tmp_path, "hello", is_resumable=is_resumable)
    (directory.path / "run.json").touch()
    (directory.path / "summary.json").mkdir()  # no file can replace it
    with pytest.raises(UsageError, match=advice):
        directory.write_summary(filled_summary({}, [], seed=0))


def test_git_ignores_the_default_folder_and_no_other(tmp_path: Path) -> None:
    for out in (".wsgiload/runs", "elsewhere/runs"):
        RunDirectory(tmp_path / out, "t")
    assert (tmp_path / ".wsgiload/.gitignore").read_text() == "*\n"
    assert list(tmp_path.rglob(".gitignore")) == [tmp_path / ".wsgiload/.gitignore"]

    (tmp_path / ".wsgiload/.gitignore").write_text("runs\n")
    RunDirectory(tmp_path / ".wsgiload/runs", "t")
    assert (tmp_path / ".wsgiload/.gitignore").read_text() == "runs\n", "the user's file is kept"
