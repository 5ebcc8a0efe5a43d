"""Limits this process's memory, so a leak in wsgiload cannot take down the host.

A thread monitors the memory in use and interrupts the process, which keeps its finished results.
Above that, the kernel limits private memory (RLIMIT_DATA): an allocation that is too large fails
with MemoryError before its pages exist. Only the soft limit is set. Children would inherit it, so
they are started ``unguarded``. Neither mechanism needs control groups.
"""

from __future__ import annotations

import errno
import os
import resource
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wsgiload.errors import UsageError
from wsgiload.units import parse_size_bytes

VARIABLE = "WSGILOAD_OWN_MEMORY"
# Share of the host's memory; even long experiments need a fraction of it.
SHARE = 0.5
MIN_BYTES = 1 << 30
# Room to store the results and report the error; without any, an interpreter cannot even exit.
RESERVE_BYTES = 512 << 20
POLL_S = 0.2

_OWN_PAGES = Path("/proc/self/statm")
_limit_bytes: int | None = None
_is_exceeded = threading.Event()


def guard_memory() -> None:
    """Limit this process. Raises UsageError for an invalid size."""
    global _limit_bytes
    configured = os.environ.get(VARIABLE)
    _limit_bytes = parse_size_bytes(configured) if configured else max(MIN_BYTES, _share_bytes())
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    max_bytes = _limit_bytes + RESERVE_BYTES
    if hard == resource.RLIM_INFINITY or max_bytes < hard:
        resource.setrlimit(resource.RLIMIT_DATA, (max_bytes, hard))
    threading.Thread(target=_watch, args=(_limit_bytes,), daemon=True).start()


def limit_bytes() -> int | None:
    """The limit; None if there is none."""
    return _limit_bytes


def is_exceeded() -> bool:
    """Whether the process was interrupted because of its memory."""
    return _is_exceeded.is_set()


def lift_guard() -> None:
    """After a failed allocation, leave room to store the results and report the error."""
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))


@contextmanager
def unguarded() -> Iterator[None]:
    """A child that is started within the block does not inherit the limit."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    lift_guard()
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def _watch(max_bytes: int) -> None:
    while _used_bytes() <= max_bytes:
        time.sleep(POLL_S)
    _is_exceeded.set()
    os.kill(os.getpid(), signal.SIGTERM)


def _used_bytes() -> int:
    """Resident memory without file-backed pages."""
    try:
        resident, shared = map(int, _OWN_PAGES.read_text().split()[1:3])
    except OSError:
        return 0
    return (resident - shared) * os.sysconf("SC_PAGE_SIZE")


def _share_bytes() -> int:
    return int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * SHARE)


USUAL_LIMIT = 4096
NO_NEW_THREAD = "can't start new thread"  # Python's words
_REFUSALS = (NO_NEW_THREAD, os.strerror(errno.EAGAIN))


def process_limit_error(error: object) -> UsageError | None:
    """The error to report if this error or text says that the system refused a process or thread;
    otherwise None."""
    if not any(words in str(error) for words in _REFUSALS):
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    most = "" if limit == resource.RLIM_INFINITY else f" (ulimit -u is {limit:,})"
    return UsageError(
        f"this user may start no further process or thread{most}",
        f"ulimit -u {USUAL_LIMIT}, or end other processes of this user; in a container, raise "
        "its limit on processes",
    )
