"""Starts a process that is pinned and in its groups before its first instruction.

The kernel does not move memory charges with a process, so entering a group later would miss them.
If the system supports it, the process dies with this one.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from wsgiload.errors import LimitsError, ServerError
from wsgiload.host.cpus import available_cpus
from wsgiload.host.memory_guard import unguarded

CAN_PIN = hasattr(os, "sched_setaffinity")  # macOS has no way to pin

# "0" means the writer itself. After the last write, the shell becomes the server and keeps its pid.
# Its parent is checked after requesting the death signal, so the parent's death cannot be missed.
ENTER_SCRIPT = (
    '[ "$PPID" = "$1" ] || exit 126; shift; '
    'while [ "$1" != -- ]; do echo 0 > "$1" || exit 126; shift; done; shift; exec "$@"'
)


def launch(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    log: IO[bytes],
    entries: Sequence[Path] = (),
    server_cpus: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Run ``argv`` in a new session; the process first writes itself into ``entries``, the
    cgroup.procs files.

    With entries, a nonexistent program gives exit code 127 and a line in the log.
    """
    command = _entering(entries, argv) if entries else list(argv)
    with _affinity(server_cpus), unguarded():
        try:
            return subprocess.Popen(
                command,
                env=dict(env),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            cause = f"{argv[0]} cannot be started in {cwd}: {error.strerror}"
            raise ServerError(cause, "check that both exist", step="launch") from error


def _entering(entries: Sequence[Path], argv: Sequence[str]) -> list[str]:
    """The command, preceded by writing itself into these files."""
    words = ["/bin/sh", "-c", ENTER_SCRIPT, "wsgiload-enter", str(os.getpid()), *map(str, entries)]
    return [*_ends_with_us(), *words, "--", *argv]


@functools.cache
def _ends_with_us() -> tuple[str, ...]:
    """The prefix of a command that lets the kernel kill the process when this one dies; empty if
    the system has no such program."""
    program = shutil.which("setpriv")
    if program is None:
        return ()
    words = (program, "--pdeathsig", "KILL")
    tried = subprocess.run([*words, "/bin/true"], capture_output=True, check=False)
    return words if tried.returncode == 0 else ()


def pinned_to(server_cpus: Sequence[int]) -> tuple[int, ...]:
    """The cores that a server with this pinning gets, read back from the kernel; () means all of
    ours."""
    with _affinity(server_cpus):
        return available_cpus()


@contextmanager
def _affinity(cores: Sequence[int]) -> Iterator[None]:
    """Pin the calling thread temporarily: a child inherits this without code between fork and
    exec."""
    if not cores or not CAN_PIN:
        yield
        return
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, cores)
    except OSError as error:
        raise LimitsError(f"cannot pin to the cores {list(cores)}: {error.strerror}") from error
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def reap(processes: Sequence[subprocess.Popen[bytes]], timeout_s: float = 1.0) -> None:
    """Collect the exit codes of our children that were just killed."""
    for process in processes:
        try:
            process.wait(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            continue  # the caller's check for survivors reports it
