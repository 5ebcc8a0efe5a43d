"""Resource use of single processes, read from a fake /proc and from the test's own process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from wsgiload.sampling.processes import PAGE_BYTES, ProcessWatch, proportional_bytes

MS = 1_000_000
Write = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a process into a fake /proc; each thread has run and waited for these milliseconds."""

    def write_process(pid: int, parent: int = 1, **threads: tuple[int, int]) -> None:
        directory = tmp_path / "proc" / str(pid)
        for name, (ran_ms, waited_ms) in threads.items():
            task = directory / "task" / name.removeprefix("t")
            task.mkdir(parents=True, exist_ok=True)
            (task / "schedstat").write_text(f"{ran_ms * MS} {waited_ms * MS} 5\n")
        (directory / "stat").write_text(f"{pid} (a name) of) S {parent} 0 0\n")
        (directory / "statm").write_text("900 10 1 1 0 1 0\n")
        (directory / "smaps_rollup").write_text("00 r\nRss:  40 kB\nPss:  7 kB\nPss_Dirty: 3 kB\n")

    return write_process


class Reader:
    """Reads all files found so far; an empty file stands for a thread that ended."""

    def __init__(self, watch: ProcessWatch) -> None:
        self.watch = watch
        self.paths: dict[int, Path] = {}

    def find(self) -> None:
        self.paths |= self.watch.find()

    def read(self) -> dict[int, bytes]:
        contents = {}
        for number, path in self.paths.items():
            with suppress(OSError):
                contents[number] = path.read_bytes()
        return {number: content for number, content in contents.items() if content}


def test_the_threads_of_a_process_are_summed(tmp_path: Path, write: Write) -> None:
    write(7, 3, t7=(10, 1), t8=(20, 2))
    reader = Reader(ProcessWatch(lambda: [7, 99], tmp_path))
    reader.find()
    (usage,) = reader.watch.usage(5, reader.read())
    assert (usage.t_ns, usage.pid, usage.parent_pid, usage.threads) == (5, 7, 3, 2)
    assert (usage.cpu_ns, usage.run_queue_wait_ns) == (30 * MS, 3 * MS)


def test_a_new_thread_is_found_and_an_ended_one_still_counts(tmp_path: Path, write: Write) -> None:
    write(7, t7=(10, 1))
    reader = Reader(ProcessWatch(lambda: [7], tmp_path))
    reader.find()
    assert reader.watch.usage(1, reader.read())[0].cpu_ns == 10 * MS

    write(7, t7=(11, 1), t8=(5, 5))
    assert reader.watch.usage(2, reader.read())[0].cpu_ns == 11 * MS

    reader.find()
    assert reader.watch.usage(3, reader.read())[0].cpu_ns == 16 * MS

    (tmp_path / "proc/7/task/8/schedstat").write_text("")
    (usage,) = reader.watch.usage(4, reader.read())
    assert (usage.cpu_ns, usage.threads) == (16 * MS, 1)
    assert reader.watch.find() == [], "a path is returned only once"


def test_an_ended_process_counts_only_in_the_total(tmp_path: Path, write: Write) -> None:
    write(7, t7=(10, 1))
    watch = ProcessWatch(lambda: [7], tmp_path)
    reader = Reader(watch)
    reader.find()
    watch.usage(1, reader.read())
    assert watch.usage(2, {}) == []
    total = watch.total(2, {})
    assert (total.cpu_ns, total.threads, total.memory_bytes) == (10 * MS, 0, None)


def test_the_total_includes_memory(tmp_path: Path, write: Write) -> None:
    write(7, t7=(10, 1))
    write(8, t8=(20, 2))
    reader = Reader(ProcessWatch(lambda: [7, 8], tmp_path))
    reader.find()
    total = reader.watch.total(9, reader.read())
    assert (total.cpu_ns, total.run_queue_wait_ns, total.threads) == (30 * MS, 3 * MS, 2)
    assert total.memory_bytes == 20 * PAGE_BYTES


def test_an_unreadable_list_of_processes_is_not_an_error(tmp_path: Path) -> None:
    def fail() -> list[int]:
        raise OSError("gone")

    watch = ProcessWatch(fail, tmp_path)
    assert watch.find() == []
    assert (watch.usage(1, {}), watch.total(1, {}).memory_bytes) == ([], None)


def test_shared_pages_count_once(tmp_path: Path, write: Write) -> None:
    write(7, t7=(1, 1))
    write(8, t8=(1, 1))
    assert proportional_bytes([7, 8, 99], tmp_path) == 2 * 7 * 1024
    assert proportional_bytes([99], tmp_path) is None


def test_a_busy_thread_of_this_process_is_measured() -> None:
    has_worked, may_exit = threading.Event(), threading.Event()

    def work() -> None:
        sum(range(3_000_000))
        has_worked.set()
        may_exit.wait(60)

    reader = Reader(ProcessWatch(lambda: [os.getpid()]))
    reader.find()
    (before,) = reader.watch.usage(1, reader.read())
    thread = threading.Thread(target=work)
    thread.start()
    reader.find()
    has_worked.wait(60)
    (after,) = reader.watch.usage(2, reader.read())
    may_exit.set()
    thread.join()
    assert after.cpu_ns - before.cpu_ns > 5 * MS
