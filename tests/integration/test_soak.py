"""A soak: 19,000 connections for half an hour, or ``WSGILOAD_SOAK_CONNECTIONS`` for
``WSGILOAD_SOAK_SECONDS``. No request is lost, neither memory nor file descriptors grow, and the
load ends on time."""

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
# As many requests are in flight as arrive while one is held: 5,000 per second for 19,000.
HOLD_MS = 3_800
RATE_PER_S = CONNECTIONS * 1_000 // HOLD_MS
MIN_CONNECTIONS, MAX_CONNECTIONS = CONNECTIONS * 99 // 100, CONNECTIONS * 203 // 200
# Besides connections: the files of the process itself, and connections that are being closed.
OTHER_FILES = 64
MIN_OPEN_FILES = MAX_CONNECTIONS + 3 * OTHER_FILES

# Until every connection is open and every buffer has its size.
SETTLING_S = min(120.0, SECONDS / 3)
BETWEEN_SAMPLES_S = 5.0
MAX_RESIDENT_BYTES = 96 << 20
MAX_GROWTH_BYTES = 4 << 20
TIMEOUT_S = 10.0
# What the report of a load may take after the last request.
ENDING_S = 1.0

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
    """A process at one time."""

    resident_bytes: int
    connections: int
    other_files: int


def sample(pid: int) -> Sample:
    """The process now. Raises OSError once it has ended."""
    status = Path(f"/proc/{pid}/status").read_text()
    (resident,) = [line for line in status.splitlines() if line.startswith("VmRSS:")]
    # A thread of the generator has a file descriptor table of its own, and the table of the process
    # shows none of its connections.
    tables = [list(_files_in(task / "fd")) for task in Path(f"/proc/{pid}/task").iterdir()]
    connections = {file for table in tables for file in table if file.startswith("socket:")}
    others = max(sum(not file.startswith("socket:") for file in table) for table in tables)
    return Sample(int(resident.split()[1]) * 1024, len(connections), others)


def _files_in(table: Path) -> Iterator[str]:
    for link in table.iterdir():
        with suppress(FileNotFoundError):  # closed since it was listed
            yield str(link.readlink())


def raise_open_files(pid: int) -> None:
    """Allow the process as many files as there may be; the generator does so by itself."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (hard, hard))


def soak(url: str, report: Path) -> tuple[list[Sample], float]:
    """Send the load. Returns samples of the generator after it has settled, and its duration."""
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
            # At the end, connections are closed and the report is made.
            if time.monotonic() - began_s < SECONDS - BETWEEN_SAMPLES_S:
                samples.append(sample(process.pid))
            with suppress(subprocess.TimeoutExpired):
                process.wait(BETWEEN_SAMPLES_S)
    finally:
        process.kill()
        process.wait()
    took_s = time.monotonic() - began_s
    assert process.returncode in (0, 98), "0 valid, 98 disturbed"
    return samples, took_s


def test_a_long_load_on_many_connections_loses_nothing_and_does_not_grow(
    command: Command,
) -> None:
    stored = command.folder / "soak.json"
    with reference_process("--hold", f"{HOLD_MS}ms", longest="2h") as (server, url):
        raise_open_files(server.pid)
        before = sample(server.pid)
        samples, took_s = soak(url, stored)
        until(lambda: sample(server.pid).connections <= before.connections, "all are closed")

    assert took_s <= SECONDS + TIMEOUT_S + ENDING_S
    require_nothing_lost(read_json(stored))
    require_nothing_grows(samples)


def require_nothing_lost(report: dict[str, Any]) -> None:
    """Each request has one outcome, and it is a response."""
    outcomes = dict(report["outcomes"])
    scheduled = outcomes.pop("scheduled")
    assert scheduled == SECONDS * RATE_PER_S
    assert sum(outcomes.values()) == scheduled, "each request has exactly one outcome"
    assert outcomes["client_error"] == 0
    assert report["connections"]["peak"] >= MIN_CONNECTIONS
    if outcomes["ok"] != scheduled and report["verdict"]["blame"] in ("host", "client"):
        inconclusive(f"{outcomes} while {report['verdict']['reasons'][0]['message']}")
    assert outcomes["ok"] == scheduled, outcomes


def require_nothing_grows(samples: list[Sample]) -> None:
    """Memory and file descriptors do not grow after the load has settled."""
    resident = [one.resident_bytes for one in samples]
    connections = [one.connections for one in samples]
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
    assert {one.other_files for one in samples} == {samples[0].other_files}
    assert samples[0].other_files <= OTHER_FILES
