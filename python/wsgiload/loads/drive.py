"""Runs one load in a generator process of its own, pinned to the client's cores and outside the
server's limits."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

from wsgiload.errors import LoadError
from wsgiload.host.cpus import CpuPlan

# Each time costs 0.14 ms on the generator's core, as much as a sample does.
POLL_S = 0.5
# After a stop the generator has only to add up what it has.
STOP_TIMEOUT_S = 30.0


def drive(
    plan: dict[str, Any],
    cpu_plan: CpuPlan,
    should_stop: Callable[[], bool] = lambda: False,
    on_start: Callable[[int], None] = lambda pid: None,
) -> dict[str, Any]:
    """Carry the plan out on the client's cores and return the report's JSON.

    ``should_stop`` is asked twice a second; ``on_start`` is told the generator's process id. On
    cores that the server does not share the generator goes before ordinary processes; on shared
    ones it must not, or it would starve the server. An exception while waiting (Ctrl-C) stops the
    load before it goes on.
    """
    # A file, because a report can be larger than a pipe holds and nobody reads while the load runs.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(
            # -P: nothing is imported from the app's folder.
            [sys.executable, "-P", "-m", "wsgiload.loads._driver"],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=complaints,
            start_new_session=True,
        )
        try:
            on_start(process.pid)
            _order(process, _own_or_shared(plan, cpu_plan))
            while not _has_ended(process, POLL_S):
                if should_stop():
                    _end(process)
        finally:
            _end(process)
        return _result(process, output, complaints)


def _own_or_shared(plan: dict[str, Any], cpu_plan: CpuPlan) -> dict[str, Any]:
    """The order; on shared cores no real-time priority, and the generator spins only if asked
    to."""
    shared = cpu_plan.shared_cores
    return {
        "plan": {**plan, "shares_cores": shared},
        "cpus": list(cpu_plan.client_cpus),
        "realtime": not shared,
    }


def _order(process: subprocess.Popen[bytes], order: dict[str, Any]) -> None:
    assert process.stdin is not None
    # A generator that died at its start is no surprise here: its complaint is read with the result.
    with suppress(BrokenPipeError):
        process.stdin.write(json.dumps(order).encode() + b"\n")
        process.stdin.flush()


def _has_ended(process: subprocess.Popen[bytes], timeout_s: float) -> bool:
    """Sleeps until the end: ``Popen.wait`` would wake up eighty times a second, on the generator's
    core."""
    if process.poll() is not None:
        return True
    descriptor = os.pidfd_open(process.pid)
    try:
        select.select([descriptor], [], [], timeout_s)
    finally:
        os.close(descriptor)
    return process.poll() is not None


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask for the end by closing the generator's input, and insist if it does not come."""
    if process.stdin is not None and not process.stdin.closed:
        with suppress(BrokenPipeError):
            process.stdin.close()
    if not _has_ended(process, STOP_TIMEOUT_S):
        process.kill()
        process.wait()


def _result(
    process: subprocess.Popen[bytes], output: IO[bytes], complaints: IO[bytes]
) -> dict[str, Any]:
    output.seek(0)
    try:
        report: dict[str, Any] = json.loads(output.read())
    except ValueError:
        complaints.seek(0)
        last = complaints.read().decode(errors="replace").strip().splitlines()[-1:]
        raise LoadError(
            f"the load generator ended with code {process.returncode} and no report: "
            f"{' '.join(last)}"
        ) from None
    if "error" in report:
        raise LoadError(report["error"])
    return report
