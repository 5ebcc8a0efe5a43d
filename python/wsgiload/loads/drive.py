"""Runs one load in a generator process on the client's cores, outside the server's limits, if
anything listens where it would be sent; and reads its progress, which the generator writes to a
file in memory.

Reader and writer never wait for each other. Without a reader, there is no such file.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Self
from urllib.parse import SplitResult, urlsplit

import msgspec

from wsgiload._loadgen import read_progress
from wsgiload.documents.base import decode_json
from wsgiload.documents.codec import decode, encode
from wsgiload.documents.load_plan import LoadPlan
from wsgiload.documents.load_report import LoadReport, Outcomes
from wsgiload.errors import LoadError, ServerError, UsageError
from wsgiload.host.cpus import CpuPlan
from wsgiload.host.memory_guard import process_limit_error, unguarded
from wsgiload.interrupts import signal_name
from wsgiload.loads._driver import Failure, Order

# Each poll costs 0.14 ms on the generator's core, as much as a sample.
POLL_S = 0.5
# After a stop, the generator only has to compute its report.
STOP_TIMEOUT_S = 30.0
# The end of a crashed generator's stderr contains the cause.
MAX_ERROR_BYTES = 16 << 10
DEATH_FIX = (
    "check with `dmesg` whether it was OOM-killed, and with `df` whether the directory for "
    "temporary files is full"
)


def drive(
    plan: LoadPlan,
    cpu_plan: CpuPlan,
    should_stop: Callable[[], bool] = lambda: False,
    on_start: Callable[[int], object] = lambda pid: None,
    progress: ProgressFile | None = None,
) -> LoadReport:
    """Run the plan on the client's cores and return its report.

    ``should_stop`` is polled twice a second; ``on_start`` gets the generator's process id;
    ``progress`` is the file that shows the load's progress. On cores that the server does not
    share, the generator has real-time priority; on shared cores, it would starve the server. An
    exception while waiting (Ctrl-C) stops the load before it propagates.
    """
    # Files, because a report can exceed the size of a pipe, which is not read during the load.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as stderr:
        with unguarded():
            process = _started(output, stderr, progress)
        try:
            on_start(process.pid)
            _send_order(process, _order_of(plan, cpu_plan, progress))
            while not _has_ended(process, POLL_S):
                if should_stop():
                    _end(process)
        finally:
            _end(process)
        return _result(process, output, stderr)


def _started(
    output: IO[bytes], stderr: IO[bytes], progress: ProgressFile | None
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        # -P: nothing is imported from the app's folder.
        [sys.executable, "-P", "-m", "wsgiload.loads._driver"],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=stderr,
        start_new_session=True,
        pass_fds=() if progress is None else (progress.descriptor,),
    )


def _order_of(plan: LoadPlan, cpu_plan: CpuPlan, progress: ProgressFile | None) -> Order:
    """The driver's input. On shared cores, the generator has no real-time priority and busy-waits
    only on request."""
    shared = cpu_plan.shared_cores
    plan = msgspec.structs.replace(plan, shares_cores=shared)
    return Order(
        plan=msgspec.Raw(encode(plan).encode()),
        cpus=tuple(cpu_plan.client_cpus),
        realtime=not shared,
        progress=None if progress is None else progress.path,
    )


def _send_order(process: subprocess.Popen[bytes], order: Order) -> None:
    assert process.stdin is not None
    # If the generator died at its start, ``_result`` reports its error.
    with suppress(BrokenPipeError):
        process.stdin.write(msgspec.json.encode(order) + b"\n")
        process.stdin.flush()


def _has_ended(process: subprocess.Popen[bytes], timeout_s: float) -> bool:
    """Whether the process ends within the timeout. ``Popen.wait`` would wake up 80 times a second
    on the generator's core."""
    if process.poll() is not None:
        return True
    pidfd = os.pidfd_open(process.pid)
    try:
        select.select([pidfd], [], [], timeout_s)
    finally:
        os.close(pidfd)
    return process.poll() is not None


def _end(process: subprocess.Popen[bytes]) -> None:
    """Stop the generator by closing its input; kill it if it does not end."""
    if process.stdin is not None and not process.stdin.closed:
        with suppress(BrokenPipeError):
            process.stdin.close()
    if not _has_ended(process, STOP_TIMEOUT_S):
        process.kill()
        process.wait()


def _result(process: subprocess.Popen[bytes], output: IO[bytes], stderr: IO[bytes]) -> LoadReport:
    output.seek(0)
    text = output.read()
    try:
        error = decode_json(text, Failure).error
    except (msgspec.MsgspecError, UnicodeError):
        death = _death(process, len(text), stderr)
        refused = process_limit_error(death)
        raise LoadError(death, refused.fix if refused else DEATH_FIX) from None
    if error is not None:
        refused = process_limit_error(error)
        raise LoadError(error, refused.fix if refused else None)
    try:
        return decode(LoadReport, text, "the report of the load generator")
    except UsageError as damaged:
        raise LoadError(damaged.cause) from damaged


def _death(process: subprocess.Popen[bytes], report_bytes: int, stderr: IO[bytes]) -> str:
    """How a generator ended without a report, with the last line of its stderr."""
    stderr.seek(0, os.SEEK_END)
    stderr.seek(max(0, stderr.tell() - MAX_ERROR_BYTES))
    last = stderr.read().decode(errors="replace").strip().splitlines()[-1:]
    code = process.returncode
    end = f"was killed by {signal_name(-code)}" if code < 0 else f"exited with code {code}"
    extent = f"after {report_bytes:,} bytes of its" if report_bytes else "without a"
    return f"the load generator {end} {extent} report: {' '.join(last) or 'no error message'}"


DEFAULT_PORTS = {"http": 80, "https": 443}
_TIMEOUT_S = 1.0


def require_listener(plan: LoadPlan) -> None:
    """Raise ServerError if the connection is refused. The load itself reports every other error."""
    if plan.source_addresses:  # the load itself connects from them
        return
    try:
        url = urlsplit(plan.url if "://" in plan.url else f"http://{plan.url}")
        _connect(plan, url)
    except ConnectionRefusedError as error:
        place = plan.unix_socket or plan.connect_to or url.netloc
        raise ServerError(
            f"nothing listens on {place.rpartition('@')[2]}: {error.strerror}",
            "start the server, or correct the address",
        ) from error
    except (KeyError, OSError, ValueError):
        pass


def _connect(plan: LoadPlan, url: SplitResult) -> None:
    if plan.unix_socket is not None:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_TIMEOUT_S)
            connection.connect(plan.unix_socket)
        return
    target = url if plan.connect_to is None else urlsplit(f"//{plan.connect_to}")
    port = target.port or DEFAULT_PORTS[url.scheme]
    socket.create_connection((target.hostname or "", port), _TIMEOUT_S).close()


class LoadProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The latest progress; timestamps are nanoseconds of CLOCK_MONOTONIC."""

    at_ns: int
    start_ns: int
    measure_from_ns: int
    measure_to_ns: int
    outcomes: Outcomes
    """Outcomes of the measurement so far; requests in the system only count as scheduled."""
    scheduled: int
    """Scheduled requests so far, including warm-up and cool-down."""
    answered: int
    """Complete responses so far, including warm-up and cool-down."""
    p50_ns: int | None
    p99_ns: int | None

    @property
    def ended(self) -> int:
        """Requests of the measurement that have an outcome."""
        counts: tuple[int, ...] = msgspec.structs.astuple(self.outcomes)
        return sum(counts) - self.outcomes.scheduled


class ProgressFile:
    """The in-memory file of one load, which exists until the end of the ``with`` block."""

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("wsgiload-progress")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self.descriptor)

    @property
    def path(self) -> str:
        """Its path in this process and in one that inherits the file descriptor."""
        return f"/proc/self/fd/{self.descriptor}"

    def read(self, threads: int) -> LoadProgress | None:
        """The current progress; None before all threads have written theirs."""
        text = read_progress(self.path, threads)
        return None if text is None else decode_json(text, LoadProgress)
