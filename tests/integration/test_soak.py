"""Soak test: 19,000 connections for half an hour, or ``WSGILOAD_SOAK_CONNECTIONS`` connections for
``WSGILOAD_SOAK_SECONDS``. No request is lost, neither memory use nor the number of file descriptors
grows, and the load ends on time."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from wsgiload.loads.reference_server import BUILT

from .command import Command, read_json, until
from .reference import inconclusive, needs_reference, reference_process

LOADGEN = BUILT.with_name("loadgen")
SECONDS = int(os.environ.get("WSGILOAD_SOAK_SECONDS", "1800"))
CONNECTIONS = int(os.environ.get("WSGILOAD_SOAK_CONNECTIONS", "19000"))
# By Little's law, rate x hold time = requests in flight: 5,000 per second for 19,000.
HOLD_MS = 3_800
RATE_PER_S = CONNECTIONS * 1_000 // HOLD_MS
MIN_CONNECTIONS, MAX_CONNECTIONS = CONNECTIONS * 99 // 100, CONNECTIONS * 203 // 200
# File descriptors other than open connections, including connections that are being closed.
OTHER_FILES = 64
MIN_OPEN_FILES = MAX_CONNECTIONS + 3 * OTHER_FILES

# Time until all connections are open and all buffers are allocated.
SETTLING_S = min(120.0, SECONDS / 3)
SAMPLE_INTERVAL_S = 5.0
MAX_RESIDENT_BYTES = 96 << 20
MAX_GROWTH_BYTES = 4 << 20
TIMEOUT_S = 10.0
# Time for the report after the last request.
REPORT_S = 1.0

pytestmark = [
    needs_reference,
    pytest.mark.timeout(SECONDS + 300),
    pytest.mark.skipif(
        "WSGILOAD_LONG_TESTS" not in os.environ, reason="set WSGILOAD_LONG_TESTS=1 for long tests"
    ),
    pytest.mark.skipif(
        resource.getrlimit(resource.RLIMIT_NOFILE)[1] < MIN_OPEN_FILES,
        reason=f"needs {MIN_OPEN_FILES:,} open files: ulimit -Hn {MIN_OPEN_FILES}",
    ),
]


@dataclass(frozen=True, slots=True)
class Sample:
    """Memory and open files of a process."""

    resident_bytes: int
    connections: int
    other_files: int


def take_sample(pid: int) -> Sample:
    """Sample the process. Raises OSError if it has ended."""
    status = Path(f"/proc/{pid}/status").read_text()
    (resident,) = [line for line in status.splitlines() if line.startswith("VmRSS:")]
    # Each generator thread has its own file descriptor table; the table of the process does not
    # contain the connections.
    tables = [list(_files_in(task / "fd")) for task in Path(f"/proc/{pid}/task").iterdir()]

    connections = {file for table in tables for file in table if file.startswith("socket:")}
    others = max(sum(not file.startswith("socket:") for file in table) for table in tables)
    return Sample(int(resident.split()[1]) * 1024, len(connections), others)


def _files_in(table: Path) -> Iterator[str]:
    for link in table.iterdir():
        with suppress(FileNotFoundError):  # closed after iterdir
            yield str(link.readlink())


def raise_open_files(pid: int) -> None:
    """Raise the limit of open files to the hard limit; the generator does so itself."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (hard, hard))


def soak(url: str, report: Path) -> tuple[list[Sample], float]:
    """Run the load; returns samples of the generator after it has settled, and the duration in
    seconds."""
    load = ("--rate", RATE_PER_S, "--arrivals", "constant", "--duration", f"{SECONDS}s")
    words = (*load, "--max-connections", MAX_CONNECTIONS, "--timeout", f"{TIMEOUT_S:g}s")
    argv = [str(LOADGEN), url, *map(str, words), "--quiet", "--json", str(report)]

    samples = []
    began_s = time.monotonic()
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    try:
        with suppress(subprocess.TimeoutExpired):
            process.wait(SETTLING_S)
        while process.poll() is None:
            # Not at the end, when connections are being closed.
            if time.monotonic() - began_s < SECONDS - SAMPLE_INTERVAL_S:
                samples.append(take_sample(process.pid))
            with suppress(subprocess.TimeoutExpired):
                process.wait(SAMPLE_INTERVAL_S)
    finally:
        process.kill()
        process.wait()

    took_s = time.monotonic() - began_s
    assert process.returncode in (0, 98), "0 (valid) or 98 (invalid)"
    return samples, took_s


def test_a_long_load_loses_no_request_and_does_not_grow(
    command: Command,
) -> None:
    report = command.folder / "soak.json"
    with reference_process("--hold", f"{HOLD_MS}ms", longest="2h") as (server, url):
        raise_open_files(server.pid)
        before = take_sample(server.pid)
        samples, took_s = soak(url, report)
        until(
            lambda: take_sample(server.pid).connections <= before.connections,
            "the end of all connections",
        )

    assert took_s <= SECONDS + TIMEOUT_S + REPORT_S
    require_no_request_lost(read_json(report))
    require_no_growth(samples)


def require_no_request_lost(report: dict[str, Any]) -> None:
    """Every scheduled request got a correct response."""
    outcomes = dict(report["outcomes"])
    scheduled = outcomes.pop("scheduled")
    assert scheduled == SECONDS * RATE_PER_S
    assert sum(outcomes.values()) == scheduled, "each request has exactly one outcome"

    assert outcomes["client_error"] == 0
    assert report["connections"]["peak"] >= MIN_CONNECTIONS
    if outcomes["ok"] != scheduled and report["verdict"]["blame"] in ("host", "client"):
        inconclusive(f"{outcomes} while {report['verdict']['reasons'][0]['message']}")
    assert outcomes["ok"] == scheduled, outcomes


def require_no_growth(samples: list[Sample]) -> None:
    """Memory use and the number of file descriptors do not grow after the load has settled."""
    resident = [sample.resident_bytes for sample in samples]
    connections = [sample.connections for sample in samples]
    growth = max(resident) - resident[0]
    sys.stdout.write(
        f"{len(samples)} samples: {min(connections):,} to {max(connections):,} connections, "
        f"{resident[0]:,} to {max(resident):,} bytes resident, growth {growth:,}\n"
    )

    assert len(samples) >= 2
    assert max(resident) <= MAX_RESIDENT_BYTES
    assert growth <= MAX_GROWTH_BYTES
    assert min(connections) >= MIN_CONNECTIONS
    assert max(connections) <= MAX_CONNECTIONS + OTHER_FILES
    assert {sample.other_files for sample in samples} == {samples[0].other_files}
    assert samples[0].other_files <= OTHER_FILES
