"""What single processes used, on invented processes and on this one."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from wsgiload.processes import PAGE_BYTES, ProcessWatch, proportional_bytes

MS = 1_000_000
Write = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """A process with threads; each has run and waited for so many milliseconds."""

    def put(pid: int, parent: int = 1, **threads: tuple[int, int]) -> None:
        folder = tmp_path / "proc" / str(pid)
        for name, (ran_ms, waited_ms) in threads.items():
            task = folder / "task" / name.removeprefix("t")
            task.mkdir(parents=True, exist_ok=True)
            (task / "schedstat").write_text(f"{ran_ms * MS} {waited_ms * MS} 5\n")
        (folder / "stat").write_text(f"{pid} (a name) of) S {parent} 0 0\n")
        (folder / "statm").write_text("900 10 1 1 0 1 0\n")
        (folder / "smaps_rollup").write_text("00 r\nRss:  40 kB\nPss:  7 kB\nPss_Dirty: 3 kB\n")

    return put


def test_threads_are_added_up(tmp_path: Path, write: Write) -> None:
    write(7, 3, t7=(10, 1), t8=(20, 2))
    watch = ProcessWatch(lambda: [7, 99], tmp_path)
    watch.refresh()
    (usage,) = watch.usage(5)
    assert (usage.t_ns, usage.pid, usage.parent_pid, usage.threads) == (5, 7, 3, 2)
    assert (usage.cpu_ns, usage.run_queue_wait_ns) == (30 * MS, 3 * MS)
    watch.close()


def test_a_thread_that_began_later_is_found_and_one_that_ended_is_not_forgotten(tmp_path: Path, write: Write) -> None:
    write(7, t7=(10, 1))
    watch = ProcessWatch(lambda: [7], tmp_path)
    watch.refresh()
    watch.usage(1)
    write(7, t7=(11, 1), t8=(5, 5))
    # an empty file is what is left of a thread here; the kernel says ESRCH
    assert watch.usage(2)[0].cpu_ns == 11 * MS
    watch.refresh()
    assert watch.usage(3)[0].cpu_ns == 16 * MS
    (tmp_path / "proc/7/task/8/schedstat").write_text("")
    assert (watch.usage(4)[0].cpu_ns, watch.usage(4)[0].threads) == (16 * MS, 1)
    watch.close()


def test_all_together_with_their_memory(tmp_path: Path, write: Write) -> None:
    write(7, t7=(10, 1))
    write(8, t8=(20, 2))
    watch = ProcessWatch(lambda: [7, 8], tmp_path)
    watch.refresh()
    total = watch.total(9)
    assert (total.cpu_ns, total.run_queue_wait_ns, total.threads) == (30 * MS, 3 * MS, 2)
    assert total.memory_bytes == 20 * PAGE_BYTES
    watch.close()


def test_a_source_of_processes_that_fails_ends_nothing(tmp_path: Path) -> None:
    def fail() -> list[int]:
        raise OSError("gone")

    watch = ProcessWatch(fail, tmp_path)
    watch.refresh()
    assert (watch.usage(1), watch.total(1).memory_bytes) == ([], None)


def test_shared_pages_count_once(tmp_path: Path, write: Write) -> None:
    write(7, t7=(1, 1))
    write(8, t8=(1, 1))
    assert proportional_bytes([7, 8, 99], tmp_path) == 2 * 7 * 1024
    assert proportional_bytes([99], tmp_path) is None


def test_a_busy_thread_of_this_process_is_seen() -> None:
    worked, leave = threading.Event(), threading.Event()

    def work() -> None:
        sum(range(3_000_000))
        worked.set()
        leave.wait(60)

    watch = ProcessWatch(lambda: [os.getpid()])
    watch.refresh()
    (before,) = watch.usage(1)
    thread = threading.Thread(target=work)
    thread.start()
    watch.refresh()
    worked.wait(60)
    (after,) = watch.usage(2)
    leave.set()
    thread.join()
    watch.close()
    assert after.cpu_ns - before.cpu_ns > 5 * MS
