"""Sampling at a fixed interval, and the summary of the samples."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from wsgiload.documents.codec import to_plain
from wsgiload.limits import COUNTER_NAMES, Counters
from wsgiload.limits.files import CounterSource, single
from wsgiload.sampling.resources import NOTHING_SAMPLED, summarise
from wsgiload.sampling.sampler import RESOURCE_COLUMNS, Sample, Sampler

MS = 1_000_000
CONTRACT_COLUMNS = (
    "cell,t_ns,cpu_usage_ns,cpu_user_ns,cpu_system_ns,nr_periods,nr_throttled,throttled_ns,memory_bytes,"
    "memory_anon_bytes,memory_file_bytes,oom_kill,pids,psi_cpu_some_ns,psi_cpu_full_ns,psi_memory_some_ns,"
    "listen_queue,listen_drops,steal_ns,psi_memory_full_ns,psi_io_some_ns,psi_io_full_ns,memory_high,run_queue_wait_ns,"
    "host_busy_ns,memory_shared_bytes,memory_kernel_bytes,late_ns,width_ns"
)
CONTRACT_KEYS = (
    "cpu_cores_mean cpu_cores_peak cpu_ns_per_request memory_peak_bytes memory_mean_bytes "
    "page_cache_peak_bytes throttled_period_ratio oom_kills psi_cpu_some_ratio listen_queue_peak listen_drops "
    "processes_peak "
    "pss_before_bytes pss_after_bytes"
)


class CountingGroup:
    """A group whose CPU counter grows by one per reading; some readings fail."""

    def __init__(self, fails: Callable[[int], bool] = lambda reading: False) -> None:
        self.readings = 0
        self._fails = fails

    def read_counters(self) -> Counters:
        self.readings += 1
        if self._fails(self.readings):
            raise OSError("gone")
        return Counters(cpu_usage_ns=self.readings)


def wait_for(sampler: Sampler, count: int) -> None:
    deadline_s = time.monotonic() + 20
    while len(sampler.samples) < count:
        assert time.monotonic() < deadline_s
        time.sleep(0.001)


def at(milliseconds: int, **values: int) -> Sample:
    return Sample(milliseconds * MS, 0, Counters(**values))


def test_columns_and_keys_match_the_contract() -> None:
    assert ",".join(RESOURCE_COLUMNS) == CONTRACT_COLUMNS
    assert list(to_plain(NOTHING_SAMPLED)) == CONTRACT_KEYS.split()
    row = at(1, pids=3).row("cell")
    assert len(row) == len(RESOURCE_COLUMNS) == len(COUNTER_NAMES) + 4
    assert row[:2] == ["cell", MS] and row[RESOURCE_COLUMNS.index("pids")] == 3


def test_samples_are_in_order_and_the_last_is_taken_at_the_end() -> None:
    group = CountingGroup()
    with Sampler(group, interval_ns=2 * MS) as sampler:
        wait_for(sampler, 5)
    samples = sampler.stop()
    times = [sample.t_ns for sample in samples]

    assert times == sorted(times) and len(samples) == group.readings
    assert all(sample.late_ns >= 0 for sample in samples)
    assert samples[-1].late_ns < 1_000 * MS
    assert samples[0].counters.steal_ns is not None


def test_a_long_interval_does_not_delay_the_end() -> None:
    with Sampler(CountingGroup(), interval_ns=3_600_000 * MS) as sampler:
        wait_for(sampler, 1)
    assert len(sampler.samples) == 2


def test_a_source_that_fails_becomes_none(tmp_path: Path) -> None:
    group = CountingGroup(fails=lambda reading: reading % 2 == 0)
    with Sampler(group, interval_ns=MS, root=tmp_path) as sampler:
        wait_for(sampler, 4)
    assert [sample.counters.cpu_usage_ns for sample in sampler.samples[:4]] == [1, None, 3, None]
    assert sampler.samples[0].counters.steal_ns is None


def test_a_sampler_that_never_started_can_be_stopped() -> None:
    assert Sampler(CountingGroup()).stop() == ()


def test_the_accept_queue_of_a_port_is_sampled() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=4) as server:
        port = server.getsockname()[1]
        with (
            socket.create_connection(("127.0.0.1", port)),
            Sampler(CountingGroup(), port=port, interval_ns=MS) as sampler,
        ):
            wait_for(sampler, 2)

    assert sampler.samples[0].counters.listen_queue == 1
    assert sampler.samples[0].counters.listen_drops == 0


def test_the_summary_covers_the_samples_in_the_window() -> None:
    samples = [
        at(
            0,
            cpu_usage_ns=0,
            memory_anon_bytes=400,
            oom_kill=0,
            pids=9,
            nr_periods=0,
            nr_throttled=0,
        ),
        at(
            100,
            cpu_usage_ns=90 * MS,
            memory_anon_bytes=100,
            oom_kill=1,
            pids=2,
            nr_periods=1,
            nr_throttled=1,
        ),
        at(
            200,
            cpu_usage_ns=110 * MS,
            memory_anon_bytes=300,
            oom_kill=1,
            pids=4,
            nr_periods=2,
            nr_throttled=1,
        ),
        at(
            300,
            cpu_usage_ns=190 * MS,
            memory_anon_bytes=200,
            oom_kill=1,
            pids=3,
            nr_periods=5,
            nr_throttled=2,
        ),
        at(
            400,
            cpu_usage_ns=900 * MS,
            memory_anon_bytes=500,
            oom_kill=2,
            pids=9,
            nr_periods=9,
            nr_throttled=9,
        ),
    ]
    summary = summarise(samples, (50 * MS, 350 * MS), ok_count=30)

    assert summary.cpu_cores_mean == pytest.approx(0.5)
    assert summary.cpu_cores_peak == pytest.approx(0.8)
    assert summary.cpu_ns_per_request == 5 * MS  # 0.5 cores over 300 ms for 30 requests
    # A limit must also hold during the warm-up and after the window.
    assert (summary.memory_peak_bytes, summary.memory_mean_bytes) == (500, 200)
    assert summary.throttled_period_ratio == pytest.approx(0.25)
    assert summary.oom_kills == 2  # also those outside the window
    assert summary.processes_peak == 4
    assert summary.listen_drops is None and summary.psi_cpu_some_ratio is None
    started = summarise(samples, (50 * MS, 350 * MS), 30, starting_peak_bytes=950)
    assert started.memory_peak_bytes == 950


def test_memory_is_what_the_server_cannot_give_back_and_page_cache_is_apart() -> None:
    samples = [
        at(
            0,
            memory_bytes=1_000,
            memory_anon_bytes=100,
            memory_shared_bytes=30,
            memory_kernel_bytes=7,
            memory_file_bytes=830,
        ),
        at(100, memory_bytes=2_000),  # a sample without memory.stat
        at(200, memory_bytes=200, memory_anon_bytes=120),
    ]
    used = summarise(samples, (0, 200 * MS), None)
    assert (used.memory_peak_bytes, used.memory_mean_bytes) == (137, 128)
    assert used.page_cache_peak_bytes == 800


def test_pressure_and_accept_queue_are_summarised() -> None:
    samples = [
        at(0, psi_cpu_some_ns=5 * MS, listen_queue=0, listen_drops=2),
        at(100, psi_cpu_some_ns=30 * MS, listen_queue=7, listen_drops=2),
        at(200, psi_cpu_some_ns=55 * MS, listen_queue=1, listen_drops=6),
    ]
    summary = summarise(samples, (0, 200 * MS), None)
    assert summary.psi_cpu_some_ratio == pytest.approx(0.25)
    assert (summary.listen_queue_peak, summary.listen_drops) == (7, 4)


def test_pressure_never_exceeds_the_whole_time() -> None:
    samples = [at(0, psi_cpu_some_ns=0), at(1_000, psi_cpu_some_ns=1_003 * MS)]
    assert summarise(samples, (0, 1_000 * MS), None).psi_cpu_some_ratio == 1.0


@pytest.mark.parametrize("samples", [[], [at(5)], [at(5, cpu_usage_ns=3)], [at(5), at(6)]])
def test_too_few_samples_give_unknown_instead_of_zero(samples: list[Sample]) -> None:
    summary = summarise(samples, (0, 10 * MS), 10)
    assert summary == NOTHING_SAMPLED
    assert set(to_plain(summary).values()) == {None}


def test_without_requests_the_cost_per_request_is_unknown() -> None:
    samples = [at(0, cpu_usage_ns=0), at(100, cpu_usage_ns=MS)]
    assert summarise(samples, (0, 100 * MS), 0).cpu_ns_per_request is None
    assert summarise(samples, (0, 100 * MS), None).cpu_ns_per_request is None


def test_a_cost_per_request_needs_samples_of_the_whole_window() -> None:
    samples = [at(t_ms, cpu_usage_ns=t_ms * MS // 2) for t_ms in range(0, 600, 100)]
    assert summarise(samples, (0, 500 * MS), 10).cpu_ns_per_request == 25 * MS
    assert summarise(samples, (0, 700 * MS), 10).cpu_ns_per_request == 35 * MS
    died = summarise(samples, (0, 2000 * MS), 10)
    assert died.cpu_ns_per_request is None and died.cpu_cores_mean == pytest.approx(0.5)


def test_a_counter_that_decreased_is_unknown() -> None:
    samples = [at(0, cpu_usage_ns=9, listen_drops=9), at(100, cpu_usage_ns=3, listen_drops=0)]
    summary = summarise(samples, (0, 100 * MS), 1)
    assert summary.cpu_cores_mean is None and summary.listen_drops is None


def test_a_very_short_last_interval_is_not_a_peak() -> None:
    samples = [at(0, cpu_usage_ns=0), at(100, cpu_usage_ns=10 * MS), at(200, cpu_usage_ns=20 * MS)]
    samples.append(at(201, cpu_usage_ns=24 * MS))
    assert summarise(samples, (0, 300 * MS), 1).cpu_cores_peak == pytest.approx(0.1)


def test_a_gap_is_bridged_by_the_samples_around_it() -> None:
    samples = [at(0, cpu_usage_ns=0), at(100), at(400, cpu_usage_ns=200 * MS)]
    assert summarise(samples, (0, 400 * MS), 1).cpu_cores_mean == pytest.approx(0.5)
    assert asdict(samples[1].counters)["cpu_usage_ns"] is None


class CounterFiles:
    """A group whose counters come from files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "usage").write_text("7\n")
        (folder / "broken").write_text("nonsense\n")

    def read_counters(self) -> Counters:
        raise AssertionError("its files are read instead")

    def sources(self) -> tuple[CounterSource, ...]:
        names = {"usage": "cpu_usage_ns", "broken": "pids", "missing": "oom_kill"}
        return tuple(
            CounterSource(self.folder / name, single(column)) for name, column in names.items()
        )


def test_files_are_read_in_native_code_and_parsed_at_the_end(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=4) as server:
        port = server.getsockname()[1]
        with (
            socket.create_connection(("127.0.0.1", port)),
            Sampler(
                CounterFiles(tmp_path), port=port, pids=lambda: [os.getpid()], interval_ns=2 * MS
            ) as sampler,
        ):
            time.sleep(0.05)

    samples = sampler.samples
    times = [sample.t_ns for sample in samples]
    assert len(samples) > 3 and times == sorted(times)
    assert {sample.counters.cpu_usage_ns for sample in samples} == {7}
    assert {(sample.counters.pids, sample.counters.oom_kill) for sample in samples} == {
        (None, None)
    }
    assert {sample.counters.listen_queue for sample in samples} == {1}
    assert all(sample.width_ns > 0 and sample.late_ns >= 0 for sample in samples)
    assert samples[0].counters.host_busy_ns is not None and samples[1].counters.host_busy_ns is None
    assert any(sample.counters.run_queue_wait_ns is not None for sample in samples)
    assert [one.pid for one in sampler.processes[:1]] == [os.getpid()]
    assert sampler.client[-1].cpu_ns > 0 and sampler.client[-1].memory_bytes
    assert sampler.stop() == samples


def test_a_sample_that_took_too_long_to_read_is_marked() -> None:
    assert Sample(0, 0, Counters(), width_ns=10 * MS + 1).is_wide
    assert not Sample(0, 0, Counters(), width_ns=10 * MS).is_wide
