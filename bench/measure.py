"""Runs one program on its core and measures what it uses. Independent of generators."""

from __future__ import annotations

import os
import resource
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.placement import Placement

_TICK_S = 0.2
_ESTABLISHED = "01"


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU time and wall time of a finished child, including its startup, and its output."""

    code: int
    wall_s: float
    user_s: float
    system_s: float
    stdout: bytes
    stderr: str
    # Steal time as a share of the machine's time.
    steal_share: float | None


@dataclass(frozen=True, slots=True)
class MemorySample:
    """Memory and connections of a running child."""

    at_s: float
    rss_bytes: int
    peak_rss_bytes: int
    connections: int


def run_child(
    words: list[str],
    placement: Placement,
    *,
    stdin: str = "",
    timeout_s: float,
    tick: Callable[[int], None] | None = None,
) -> Usage:
    """Run the program until it ends, or kill it after ``timeout_s``; ``tick`` gets the pid five
    times a second."""
    with (
        tempfile.TemporaryFile() as input_file,
        tempfile.TemporaryFile() as stdout,
        tempfile.TemporaryFile() as stderr,
    ):
        input_file.write(stdin.encode())
        input_file.seek(0)
        ticks, started = _cpu_ticks(), time.monotonic()
        process = subprocess.Popen(
            words,
            stdin=input_file,
            stdout=stdout,
            stderr=stderr,
            preexec_fn=placement.before_exec(),
        )
        status, used = _wait(process, started + timeout_s, tick)
        wall_s = time.monotonic() - started
        stdout.seek(0)
        stderr.seek(0)
        return Usage(
            code=os.waitstatus_to_exitcode(status),
            wall_s=wall_s,
            user_s=used.ru_utime,
            system_s=used.ru_stime,
            stdout=stdout.read(),
            stderr=stderr.read().decode(errors="replace"),
            steal_share=_steal_share(ticks, _cpu_ticks()),
        )


def _wait(
    process: subprocess.Popen[bytes], deadline: float, tick: Callable[[int], None] | None
) -> tuple[int, resource.struct_rusage]:
    handle = os.pidfd_open(process.pid)
    try:
        while True:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                break
            ready, _, _ = select.select([handle], [], [], min(left_s, _TICK_S) if tick else left_s)
            if ready:
                break
            if tick:
                tick(process.pid)
    except BaseException:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        raise
    finally:
        # The usage of only this child; the return code keeps Popen from waiting again.
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        os.close(handle)
    return status, used


def sample_memory(pid: int, port: int, started: float) -> MemorySample | None:
    """Resident memory and open connections of a child; None if it has ended.

    ``ru_maxrss`` cannot be used: it includes the memory of the harness before the child's exec.
    """
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    fields = {name: value for name, _, value in (line.partition(":") for line in lines)}
    if "VmRSS" not in fields:
        return None
    rss, peak = (int(fields[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))
    connections = count_connections(Path("/proc/net/tcp").read_text(), port)
    return MemorySample(time.monotonic() - started, rss, peak, connections)


def count_connections(table: str, port: int) -> int:
    """Established connections to a port of this machine, from the text of /proc/net/tcp."""
    remote = f":{port:04X}"
    rows = (line.split()[2:4] for line in table.splitlines()[1:])
    return sum(
        1 for row in rows if len(row) == 2 and row[0].endswith(remote) and row[1] == _ESTABLISHED
    )


def wait_until_quiet(at_most_s: float, period_s: float = 0.3) -> None:
    """Wait for a period without steal time, for at most ``at_most_s``."""
    until = time.monotonic() + at_most_s
    while time.monotonic() < until:
        before = _cpu_ticks()
        time.sleep(period_s)
        if not _steal_share(before, _cpu_ticks()):
            return


def _cpu_ticks() -> list[int]:
    try:
        first = Path("/proc/stat").read_text().partition("\n")[0]
    except OSError:
        return []
    return [int(word) for word in first.split()[1:9]]


def _steal_share(before: list[int], after: list[int]) -> float | None:
    if len(before) < 8 or len(after) < 8:
        return None
    passed = [late - early for early, late in zip(before, after, strict=True)]
    return passed[7] / sum(passed) if sum(passed) else None
