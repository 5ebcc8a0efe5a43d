"""The load generator as a process of its own: one JSON line in, one report out.

It is started by ``drive``, never by a user. The end of its standard input means that nobody waits
for the report any more, so it stops; an orchestrator that dies cannot leave a load behind.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
from contextlib import suppress

import msgspec

from wsgiload._loadgen import LoadHandle


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What the driver reads: the plan, the cores to carry it out on, whether to go first, and where
    to show its progress."""

    plan: msgspec.Raw
    cpus: tuple[int, ...]
    realtime: bool
    progress: str | None = None


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """What the driver writes instead of a report; a report has no such key."""

    error: str | None = None


def main() -> int:
    """Read an ``Order``, carry its plan out and write the report, or a ``Failure``."""
    # The keyboard's interrupt reaches the orchestrator, which decides what it means for the load.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    order = msgspec.json.decode(sys.stdin.readline(), type=Order)
    if order.cpus:
        os.sched_setaffinity(0, order.cpus)
    if order.realtime:
        _schedule_ahead()

    try:
        handle = LoadHandle(bytes(order.plan).decode(), order.progress)
        threading.Thread(target=_stop_at_end_of_input, args=(handle,), daemon=True).start()
        report = handle.result_json()
    except (ValueError, RuntimeError) as error:
        sys.stdout.write(msgspec.json.encode(Failure(error=str(error))).decode())
        return 1

    sys.stdout.write(report)
    sys.stdout.flush()
    return 0


def _schedule_ahead() -> None:
    """Ahead of ordinary processes on our cores, where this user may: another program's time slice
    of some milliseconds would otherwise show as lateness of ours. The report says whether it was
    so. With a limit for real-time threads the kernel would kill a generator that hardly sleeps."""
    if resource.getrlimit(resource.RLIMIT_RTTIME)[0] != resource.RLIM_INFINITY:
        return
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


def _stop_at_end_of_input(handle: LoadHandle) -> None:
    sys.stdin.read()
    handle.stop()


if __name__ == "__main__":
    raise SystemExit(main())
