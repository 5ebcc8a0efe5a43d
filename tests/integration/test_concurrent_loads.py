"""Loads that run at the same time send independently of each other."""

from __future__ import annotations

import asyncio
import csv
import statistics
import subprocess
from collections import Counter
from pathlib import Path

import psutil
import pytest

import wsgiload
from wsgiload import LoadOptions, Report

from .reference import needs_reference, reference_process
from .test_load import LOADGEN, needs_loadgen

RATE_PER_S = 1000
DURATION_S = 3
WINDOW_NS = 10_000_000

pytestmark = needs_reference


@pytest.mark.parametrize("loads", [8, 50])
def test_concurrent_loads_are_one_poisson_process(tmp_path: Path, loads: int) -> None:
    async def all_at_once(url: str) -> list[Report]:
        rate = RATE_PER_S / loads
        one = [wsgiload.aload(url, rate=rate, duration=DURATION_S) for _ in range(loads)]
        return await asyncio.gather(*one)

    log = tmp_path / "requests.csv"
    with reference_process("--log", log, "--log-queued") as (server, url):
        reports = asyncio.run(all_at_once(url))
        _end(server)

    assert len({report.to_dict()["plan"]["seed"] for report in reports}) == loads
    _require_independent(log, loads)


@needs_loadgen
def test_concurrent_generators_are_one_poisson_process(tmp_path: Path) -> None:
    log = tmp_path / "requests.csv"
    with reference_process("--log", log, "--log-queued") as (server, url):
        words = [LOADGEN, url, "-R", str(RATE_PER_S / 10), "-d", f"{DURATION_S}s", "--quiet"]
        generators = [subprocess.Popen(words, stdout=subprocess.DEVNULL) for _ in range(10)]
        for generator in generators:
            generator.wait(60)
        _end(server)
    _require_independent(log, 10)


def test_a_stored_seed_repeats_the_load() -> None:
    with reference_process() as (_, url):
        first = wsgiload.load(url, rate=400, duration=0.5)
        seed = first.to_dict()["plan"]["seed"]
        again = wsgiload.load(url, rate=400, duration=0.5, options=LoadOptions(seed=seed))
    assert first.outcomes["scheduled"] == again.outcomes["scheduled"]


def test_the_processes_of_a_load_send_one_schedule() -> None:
    with reference_process() as (_, url):
        reports = [
            wsgiload.load(url, rate=400, duration=0.5, options=LoadOptions(seed=3, processes=count))
            for count in (1, 3)
        ]
    one, three = (report.outcomes for report in reports)
    assert one == three
    assert one["ok"] == one["scheduled"] > 100


def test_the_end_of_a_load_waits_for_a_frozen_process() -> None:
    options = LoadOptions(processes=2)
    with reference_process() as (_, url):
        with wsgiload.start(url, rate=200, duration=60, options=options) as load:
            assert not load.wait(1.0)
            children = psutil.Process().children()
            frozen = next(one for one in children if "_loadgen" in " ".join(one.cmdline()))
            frozen.suspend()
        assert load.done() and not frozen.is_running()
        reasons = load.result().verdict.reasons
    assert "generator-lost" in [reason.check for reason in reasons]


def _end(server: subprocess.Popen[str]) -> None:
    """The server writes its log when it ends."""
    server.terminate()
    server.wait(10)


def _require_independent(log: Path, loads: int) -> None:
    """The arrivals of n loads in lockstep have an index of dispersion of n, instead of 1. A busy host
    delays requests, and so increases it."""
    with log.open() as file:
        arrivals_ns = sorted(
            int(row["queued_ns"] or row["arrive_ns"]) for row in csv.DictReader(file)
        )
    expected = RATE_PER_S * DURATION_S
    assert abs(len(arrivals_ns) - expected) <= 4 * expected**0.5

    start_ns = arrivals_ns[0]
    windows = Counter((arrival_ns - start_ns) // WINDOW_NS for arrival_ns in arrivals_ns)
    counts = [windows[number] for number in range(DURATION_S * 10**9 // WINDOW_NS)]
    index_of_dispersion = statistics.variance(counts) / statistics.mean(counts)
    assert 0.6 < index_of_dispersion < loads / 3
