"""Starts a process that is pinned and in its groups before its first instruction.

The kernel does not move memory charges with a process, so a group entered later would miss them.
If ``setpriv`` is available, the kernel kills the process when this one dies.
"""

from __future__ import annotations

import functools
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from wsgiload.account import Account
from wsgiload.errors import LimitsError, ServerError
from wsgiload.host.cpus import available_cpus
from wsgiload.host.memory_guard import process_limit_error, unguarded
from wsgiload.limits import sweep

CAN_PIN = hasattr(os, "sched_setaffinity")  # macOS has no way to pin

# "0" stands for the writing process. The shell then execs the server, which keeps its pid. The
# parent is checked after the death signal was requested, so its death cannot be missed.
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
    account: Account | None = None,
    mark: str | None = None,
) -> subprocess.Popen[bytes]:
    """Run ``argv`` in a new session; the process first joins the groups of ``entries``, which are
    cgroup.procs files, then becomes ``account``. It and all that it starts can be found by their
    ``mark``.

    With entries, a nonexistent program gives exit code 127 and a line in the log.
    """
    variables = dict(env) if mark is None else {**env, sweep.GROUP_VARIABLE: mark}
    if account is not None:
        # The process joins its groups first: another user may not.
        argv = [*account.prefix(), *argv]
        variables = account.variables(variables)
        # The output is a pipe or a file; its new owner can open it again as /dev/stdout.
        if not stat.S_ISCHR(os.fstat(log.fileno()).st_mode):
            os.fchown(log.fileno(), account.uid, account.gid)
    command = _joining(entries, argv) if entries else list(argv)
    with _affinity(server_cpus), unguarded():
        try:
            process = subprocess.Popen(
                command,
                env=variables,
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            refused = process_limit_error(error)
            cause = f"{argv[0]} cannot be started in {cwd}: {refused or error.strerror}"
            fix = None if refused else "check that both exist"
            raise ServerError(cause, fix, step="launch") from error
    if mark is not None:
        sweep.mark_process(process.pid, mark)
    return process


def _joining(entries: Sequence[Path], argv: Sequence[str]) -> list[str]:
    """A command that joins these groups, then executes ``argv``."""
    words = ["/bin/sh", "-c", ENTER_SCRIPT, "wsgiload-enter", str(os.getpid()), *map(str, entries)]
    return [*_death_signal_prefix(), *words, "--", *argv]


@functools.cache
def _death_signal_prefix() -> tuple[str, ...]:
    """The prefix of a command with which the kernel kills the process when this one dies; empty if
    ``setpriv`` is missing or does not work."""
    program = shutil.which("setpriv")
    if program is None:
        return ()
    words = (program, "--pdeathsig", "KILL")
    tested = subprocess.run([*words, "/bin/true"], capture_output=True, check=False)
    return words if tested.returncode == 0 else ()


def pinned_to(server_cpus: Sequence[int]) -> tuple[int, ...]:
    """The cores that a server with this pinning gets, as read back from the kernel; with (), all of
    ours."""
    with _affinity(server_cpus):
        return available_cpus()


@contextmanager
def _affinity(cores: Sequence[int]) -> Iterator[None]:
    """Pin the calling thread temporarily. A child inherits its affinity, so no code has to run
    between fork and exec."""
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
    """Collect the exit codes of children that were just killed."""
    for process in processes:
        try:
            process.wait(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            continue  # the caller's check for survivors reports it
