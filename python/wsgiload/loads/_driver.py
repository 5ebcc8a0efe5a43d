"""The load generator in a separate process: one JSON line in, one report out.

``drive`` starts it; users never do. The load stops at the end of standard input, so an orchestrator
that dies leaves no load behind.
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
from wsgiload.documents.base import decode_json


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """The driver's input: the plan, the cores, whether to use real-time priority, and where to show
    progress."""

    plan: msgspec.Raw
    cpus: tuple[int, ...]
    realtime: bool
    progress: str | None = None


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """The driver's output after a failure. Reports have no key ``error``."""

    error: str | None = None


def main() -> int:
    """Read an ``Order``, run its plan and write the report, or a ``Failure``."""
    # Ctrl-C reaches the orchestrator, which decides what to do with the load.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    order = decode_json(sys.stdin.readline(), Order)
    if order.cpus:
        os.sched_setaffinity(0, order.cpus)
    if order.realtime:
        _use_real_time_priority()

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


def _use_real_time_priority() -> None:
    """Use real-time priority if permitted, because other programs' time slices of some
    milliseconds would appear as send lag. The report contains the scheduling policy."""
    # With this limit, the kernel would kill a generator that hardly sleeps.
    if resource.getrlimit(resource.RLIMIT_RTTIME)[0] != resource.RLIM_INFINITY:
        return
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


def _stop_at_end_of_input(handle: LoadHandle) -> None:
    sys.stdin.read()
    handle.stop()


if __name__ == "__main__":
    raise SystemExit(main())
