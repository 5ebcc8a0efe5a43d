"""Sends short loads to a server that speaks mutated HTTP/2, and says what is wrong with how they
end: a crash, a late end, too much memory, or requests with no outcome or several."""

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
# For the start of the process, its report, and what else runs here.
MAX_LATE_S = 1.0
KILLED_AFTER_S = 5.0
MAX_RESIDENT_BYTES = 64_000_000
BETWEEN_SAMPLES_S = 0.01
# Late each time: a busy host makes one load late.
ATTEMPTS = 3
# Valid, no correct response, invalid measurement.
EXIT_CODES = (0, 97, 98)


@dataclass(frozen=True, slots=True)
class Way:
    """How a load is sent."""

    is_open: bool
    streams: int
    is_tls: bool

    def __str__(self) -> str:
        traffic, scheme = "open" if self.is_open else "closed", "https" if self.is_tls else "http"
        return f"{traffic} loop, --streams {self.streams}, {scheme}"

    def arguments(self) -> list[str]:
        """Of ``loadgen``, with the URL of the server."""
        server = scripted_server()
        scheme, port = ("https", server.tls_port) if self.is_tls else ("http", server.port)
        load = ["--rate=100", "--arrivals=constant"] if self.is_open else ["--connections=4"]
        trust = ["--insecure"] if self.is_tls else []
        protocol = ["--http2", f"--streams={self.streams}"]
        return [f"{scheme}://127.0.0.1:{port}/", *protocol, *load, *trust]


WAYS = [Way(*way) for way in itertools.product((True, False), (1, 4), (False, True))]


@dataclass(frozen=True, slots=True)
class Ended:
    """What came of a load."""

    exit_code: int
    took_s: float
    peak_bytes: int
    messages: str
    # None without a report.
    outcomes: dict[str, int] | None

    def is_late(self) -> bool:
        """Later than its plan, its timeout and a second."""
        return self.took_s > DURATION_S + TIMEOUT_S + MAX_LATE_S


def way_of(data: bytes) -> Way:
    """Depends on the input, so that the input alone repeats a failure."""
    return WAYS[zlib.crc32(data) % len(WAYS)]


def feed(data: bytes) -> str | None:
    """Sends a load to a server that sends this."""
    way = way_of(data)
    for _ in range(ATTEMPTS):
        ended = load(data, way)
        if not ended.is_late():
            break
    complaint = complaint_of_end(ended)
    return f"{way}: {complaint}" if complaint is not None else None


def load(data: bytes, way: Way) -> Ended:
    """Sends one load."""
    scripted_server().play(script_of(data))
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        report, messages = Path(folder) / "report.json", Path(folder) / "messages"
        argv = [
            *(str(LOADGEN), *way.arguments(), "--json", str(report)),
            *("--duration", f"{DURATION_S * 1000:g}ms", "--timeout", f"{TIMEOUT_S * 1000:g}ms"),
        ]
        began_s = time.monotonic()
        with messages.open("wb") as file:
            process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=file)
            peak_bytes = _watch(process)
        took_s = time.monotonic() - began_s
        return Ended(
            process.returncode,
            took_s,
            peak_bytes,
            messages.read_text(errors="replace"),
            _outcomes(report),
        )


def _watch(process: subprocess.Popen[bytes]) -> int:
    """Waits until it has ended, and kills it if it hangs; returns the peak of its memory."""
    peak_bytes, end_s = 0, time.monotonic() + KILLED_AFTER_S
    try:
        while process.poll() is None and time.monotonic() < end_s:
            peak_bytes = max(peak_bytes, _peak_bytes(process.pid))
            with suppress(subprocess.TimeoutExpired):
                process.wait(BETWEEN_SAMPLES_S)
    finally:
        process.kill()
        process.wait()
    return peak_bytes


def _peak_bytes(pid: int) -> int:
    """Not from ``wait4``, which counts what this process had when it started the other."""
    status = Path(f"/proc/{pid}/status").read_text()
    peaks = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(peaks[0].split()[1]) * 1024 if peaks else 0  # it has just ended


def _outcomes(report: Path) -> dict[str, int] | None:
    try:
        document: dict[str, Any] = json.loads(report.read_text())
    except (OSError, ValueError):
        return None
    return dict(document["outcomes"])


def complaint_of_end(ended: Ended) -> str | None:
    """What is wrong with how a load ended."""
    words = ("panicked", "Traceback", "internal error")
    if ended.exit_code not in EXIT_CODES or any(word in ended.messages for word in words):
        return f"exit code {ended.exit_code}: {ended.messages[-500:]}"
    if ended.is_late():
        return f"it took {ended.took_s:.2f} s, {ATTEMPTS} times"
    if ended.peak_bytes > MAX_RESIDENT_BYTES:
        return f"{ended.peak_bytes:,} bytes resident"
    if ended.outcomes is None:
        return f"no report: {ended.messages[-500:]}"
    scheduled = ended.outcomes["scheduled"]
    if scheduled == 0 or sum(ended.outcomes.values()) != 2 * scheduled:
        return f"scheduled is 0, or not the sum of outcomes: {ended.outcomes}"
    return None
