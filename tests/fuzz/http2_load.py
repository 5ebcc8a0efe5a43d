"""Sends short loads to a server that sends mutated HTTP/2 frames, and checks how each load ends.

Failures are crashes, late ends, high memory use, and requests without exactly one outcome.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import tempfile
import time
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wsgiload.loads.reference_server import BUILT

from .http2_frames import script_of
from .http2_server import scripted_server

LOADGEN = BUILT.with_name("loadgen")
DURATION_S = 0.1
TIMEOUT_S = 0.15
# For the start of the process, its report, and other processes on this host.
MAX_LATE_S = 1.0
KILL_TIMEOUT_S = 5.0
MAX_RESIDENT_BYTES = 64_000_000
SAMPLING_INTERVAL_S = 0.01
# A load must end late in each attempt, because a busy host can delay one.
ATTEMPTS = 3
# Exit codes: valid, no correct response, invalid measurement.
EXIT_CODES = (0, 97, 98)


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """The loop, the number of streams per connection, and the scheme of a load."""

    is_open: bool
    streams: int
    is_tls: bool

    def __str__(self) -> str:
        loop, scheme = "open" if self.is_open else "closed", "https" if self.is_tls else "http"
        return f"{loop} loop, --streams {self.streams}, {scheme}"

    def arguments(self) -> list[str]:
        """The arguments of ``loadgen``, including the URL of the server."""
        server = scripted_server()
        scheme, port = ("https", server.tls_port) if self.is_tls else ("http", server.port)
        load = ["--rate=100", "--arrivals=constant"] if self.is_open else ["--connections=4"]
        tls = ["--insecure"] if self.is_tls else []
        protocol = ["--http2", f"--streams={self.streams}"]
        return [f"{scheme}://127.0.0.1:{port}/", *protocol, *load, *tls]


ALL_OPTIONS = [
    LoadOptions(*values) for values in itertools.product((True, False), (1, 4), (False, True))
]


@dataclass(frozen=True, slots=True)
class LoadResult:
    """How a load result."""

    exit_code: int
    duration_s: float
    peak_bytes: int
    messages: str
    # None without a report.
    outcomes: dict[str, int] | None

    def is_late(self) -> bool:
        """Whether the load exceeded its duration and timeout by more than ``MAX_LATE_S``."""
        return self.duration_s > DURATION_S + TIMEOUT_S + MAX_LATE_S


def options_for(data: bytes) -> LoadOptions:
    """The options depend only on the input, so that the input alone reproduces a failure."""
    return ALL_OPTIONS[zlib.crc32(data) % len(ALL_OPTIONS)]


def feed(data: bytes) -> str | None:
    """Send a load to a server that sends this input; returns what went wrong, if anything."""
    options = options_for(data)
    for _ in range(ATTEMPTS):
        result = run_load(data, options)
        if not result.is_late():
            break
    failure = load_failure(result)
    return f"{options}: {failure}" if failure is not None else None


def run_load(data: bytes, options: LoadOptions) -> LoadResult:
    """Send one load to a server that sends this input."""
    scripted_server().play(script_of(data))
    with tempfile.TemporaryDirectory(prefix="fuzz-") as directory:
        report, stderr = Path(directory) / "report.json", Path(directory) / "stderr"
        argv = [
            *(str(LOADGEN), *options.arguments(), "--json", str(report)),
            *("--duration", f"{DURATION_S * 1000:g}ms", "--timeout", f"{TIMEOUT_S * 1000:g}ms"),
        ]

        begin_s = time.monotonic()
        with stderr.open("wb") as file:
            process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=file)
            peak_bytes = _wait(process)
        duration_s = time.monotonic() - begin_s

        messages = stderr.read_text(errors="replace")
        return LoadResult(
            process.returncode, duration_s, peak_bytes, messages, _read_outcomes(report)
        )


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Wait for the process, or kill it if it hangs; returns its peak memory use."""
    peak_bytes, end_s = 0, time.monotonic() + KILL_TIMEOUT_S
    try:
        while process.poll() is None and time.monotonic() < end_s:
            peak_bytes = max(peak_bytes, _peak_bytes(process.pid))
            with suppress(subprocess.TimeoutExpired):
                process.wait(SAMPLING_INTERVAL_S)
    finally:
        process.kill()
        process.wait()
    return peak_bytes


def _peak_bytes(pid: int) -> int:
    """The peak of the process itself: that of ``wait4`` includes the memory of this process before
    the exec."""
    status = Path(f"/proc/{pid}/status").read_text()
    peaks = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(peaks[0].split()[1]) * 1024 if peaks else 0  # a zombie has none


def _read_outcomes(report: Path) -> dict[str, int] | None:
    try:
        document: dict[str, Any] = json.loads(report.read_text())
    except (OSError, ValueError):
        return None
    return dict(document["outcomes"])


def load_failure(result: LoadResult) -> str | None:
    """What is wrong with the result, if anything."""
    crash_words = ("panicked", "Traceback", "internal error")
    if result.exit_code not in EXIT_CODES or any(word in result.messages for word in crash_words):
        return f"exit code {result.exit_code}: {result.messages[-500:]}"
    if result.is_late():
        return f"took {result.duration_s:.2f} s in the last of {ATTEMPTS} attempts"
    if result.peak_bytes > MAX_RESIDENT_BYTES:
        return f"{result.peak_bytes:,} bytes resident"
    if result.outcomes is None:
        return f"no report: {result.messages[-500:]}"

    scheduled = result.outcomes["scheduled"]
    if scheduled == 0 or sum(result.outcomes.values()) != 2 * scheduled:
        return f"scheduled is 0, or not the sum of outcomes: {result.outcomes}"
    return None
