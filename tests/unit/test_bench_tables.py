"""Benchmark figures: medians, paired ratios, arrivals at the server, and the Markdown page."""

from __future__ import annotations

import math
import random
import re
from pathlib import Path
from typing import Any

import pytest

from bench import pairs
from bench.arrivals import (
    arrival_timestamps,
    constant_arrivals,
    poisson_arrivals,
    quantile,
    server_lateness_us,
    server_quantiles_us,
)
from bench.measure import count_connections
from bench.servers import LogEntry, read_log
from bench.tables import render


def run(generator: str, number: int, cpu_s: float, **more: Any) -> dict[str, Any]:
    record = {
        "section": "closed",
        "round": number,
        "generator": generator,
        "server": "nginx",
        "connections": 64,
        "seconds": 1,
        "rate_per_s": None,
        "arrivals": None,
        "spin": None,
        "requests": 100_000,
        "failed": 0,
        "elapsed_s": 2.0,
        "user_s": cpu_s / 4,
        "system_s": cpu_s * 3 / 4,
        "steal_share": 0.01,
    }
    return record | more


def page(runs: list[dict[str, Any]], **more: Any) -> str:
    facts = (
        "cpu_model",
        "cores",
        "memory",
        "os",
        "kernel",
        "tcp_congestion_control",
        "clocksource",
        "load_average",
    )
    return render(
        {
            "date": "2026-01-02",
            "quick": False,
            "priority": "ordinary",
            "client_core": 0,
            "server_core": 1,
            "host": {**dict.fromkeys(facts, "?"), "hypervisor": False, "cpu_governor": None},
            "versions": {"loadgen": "1.0.0", "hey": None},
            "left_out": [],
            "runs": runs,
        }
        | more
    )


def row(text: str, name: str) -> list[str]:
    [line] = [line for line in text.splitlines() if line.startswith(f"| {name} |")]
    return [cell.strip() for cell in line.split("|")[2:-1]]


def test_ratios_are_paired_within_rounds_and_not_of_medians() -> None:
    # In the second round, the machine is half as fast: both medians change, the ratios do not.
    loadgen_runs = [run("loadgen", 0, 0.4), run("loadgen", 1, 0.8), run("loadgen", 2, 0.4)]
    wrk_runs = [run("wrk", 0, 0.5), run("wrk", 1, 1.0), run("wrk", 2, 1.0)]

    ratio = pairs.paired_ratio(loadgen_runs, wrk_runs, pairs.cpu_us)
    assert ratio == pairs.Spread(pytest.approx(0.8), pytest.approx(0.4), pytest.approx(0.8), 3)


def test_a_round_with_a_failed_run_is_omitted() -> None:
    failed = {
        "section": "closed",
        "round": 1,
        "generator": "wrk",
        "seconds": 1,
        "failure": "refused",
    }

    ratio = pairs.paired_ratio(
        [run("loadgen", 0, 0.4), run("loadgen", 1, 9.0)], [run("wrk", 0, 0.5), failed], pairs.cpu_us
    )
    assert ratio == pairs.Spread(pytest.approx(0.8), pytest.approx(0.8), pytest.approx(0.8), 1)
    assert pairs.paired_ratio([run("loadgen", 0, 0.4)], [], pairs.cpu_us) is None


def test_a_repeated_run_is_omitted() -> None:
    disturbed = run("loadgen", 0, 9.0, steal_share=0.3, superseded=True)
    text = page(
        [disturbed, run("loadgen", 0, 1.0, steal_share=0.0), run("wrk", 0, 2.0, steal_share=0.0)]
    )

    assert "steal time 0.0 % (median run), 0.0 % (worst run)" in text
    assert "; 1 run with more steal time repeated\n" in text

    assert "idle cores kept awake" not in text
    assert "SCHED_OTHER; idle cores kept awake; load average" in page([disturbed], awake=True)
    assert "0.50 [0.50–0.50]" in text


def test_cpu_cost_and_rate_use_the_elapsed_time_of_the_generator() -> None:
    record = run("wrk", 0, 0.8)
    assert (pairs.cpu_us(record), pairs.user_us(record), pairs.system_us(record)) == pytest.approx(
        (8.0, 2.0, 6.0)
    )
    assert pairs.requests_per_s(record) == 50_000
    assert pairs.requests_per_s(record | {"elapsed_s": None}) == 100_000
    assert pairs.cpu_us(record | {"requests": 0}) is None


def test_the_page_shows_medians_ratios_and_dashes() -> None:
    runs = [run("loadgen", number, cpu_s) for number, cpu_s in enumerate((0.4, 0.5, 0.6))]
    runs += [run("wrk", number, cpu_s) for number, cpu_s in enumerate((0.5, 0.5, 0.5))]
    broken = {key: value for key, value in run("hey", 0, 0.0).items() if key in RUN_KEYS}
    text = page([*runs, broken | {"failure": "hey printed nothing"}])

    assert row(text, "loadgen") == [
        "5.00",
        "1.25",
        "3.75",
        "1.00 [0.80–1.20]",
        "1.00 [1.00–1.00]",
        "50,000",
    ]
    assert row(text, "wrk") == [
        "5.00",
        "1.25",
        "3.75",
        "1.00 [1.00–1.00]",
        "1.00 [0.80–1.20]",
        "50,000",
    ]

    assert row(text, "hey") == ["–"] * 6
    assert "- closed, hey, nginx, 64 connections: hey printed nothing (×1)" in text
    assert "hey unknown" in text


RUN_KEYS = {"section", "round", "generator", "server", "connections"}
RUN_KEYS |= {"seconds", "rate_per_s", "arrivals", "spin"}


def test_the_page_shows_system_calls_memory_and_open_loops() -> None:
    calls = run(
        "wrk", 0, 0.5, section="syscalls", calls={"write": 100_000, "epoll_ctl": 200_000, "brk": 3}
    )
    few = run(
        "oha", 0, 0.5, section="memory", connections=100, peak_rss_bytes=2**20, most_connections=100
    )
    many = run(
        "oha",
        0,
        0.5,
        section="memory",
        connections=10_000,
        peak_rss_bytes=100 * 2**20,
        most_connections=9_999,
    )

    paced = {
        "rate_per_s": 1000,
        "arrivals": "constant",
        "spin": "0s",
        "quantiles_us": {"0.5": 2100.0, "0.99": 2200.0},
    }
    log = {
        "arrivals": {"gap_error_p50_us": 1.0, "rate_per_s": 999.6},
        "quantiles_us": {"0.5": 2000.0, "0.99": 2150.0},
    }
    log["late"] = {"server_late_p99_us": 7.0}

    lateness = {"0.5": 0.0, "0.99": 12.0, "0.999": 40.0}
    open_run = run(
        "loadgen", 0, 0.5, section="open", server_log=log, clock_late_us=lateness, **paced
    )
    accuracy = run(
        "loadgen",
        0,
        0.5,
        section="accuracy",
        server="refsrv, 2ms, sleeping",
        server_log=log,
        **paced,
    )

    assert row(page([calls]), "wrk") == ["3.00", "epoll_ctl 2.00, write 1.00"]
    assert row(page([few, many]), "oha") == ["1.0", "100", "10.2", "9,999"]
    assert "the time at which the server read the request. Lateness" in page([open_run])

    kernel_stamped = open_run | {"server_log": log | {"stamped_by_kernel": True}}
    assert "Arrivals are the kernel's timestamps at the server. Lateness" in page([kernel_stamped])
    assert "read the request in 1 of 2 runs, otherwise the kernel's timestamp. Lateness" in page(
        [kernel_stamped, open_run]
    )

    assert row(page([open_run]), "loadgen, no spin window") == [
        "1.0 / – / –",
        "–",
        "–",
        "12.0 / 40.0",
        "7.0 / –",
        "1,000",
        "5.0",
        "–",
    ]

    with_wrk2 = page([open_run, run("wrk2", 0, 1.0, section="open", **(paced | {"spin": None}))])
    assert row(with_wrk2, "loadgen, no spin window")[-2:] == ["–", "0.50 [0.50–0.50]"]
    assert row(page([accuracy]), "loadgen, no spin window")[:2] == ["100 [100–100]", "50 [50–50]"]
    assert re.search(
        r"^### 1,000/s, constant arrivals, .*, refsrv, 2 ms, sleeping$",
        page([accuracy]),
        re.MULTILINE,
    )


def test_evenly_spaced_arrivals_have_no_gap_error_and_late_ones_do() -> None:
    even = [LogEntry(number * 1_000_000, 0, None) for number in range(2_000)]
    figures = constant_arrivals(even, 1_000)
    assert figures is not None
    assert figures.pop("rate_per_s") == pytest.approx(1_000)
    assert set(figures.values()) == {0.0}

    # Every fiftieth request is 300 µs late, so one gap is too long and the next too short.
    late = [
        LogEntry(n * 1_000_000 + (300_000 if n % 50 == 0 else 0), 0, None) for n in range(2_000)
    ]
    figures = constant_arrivals(late, 1_000)
    assert figures is not None
    assert (figures["gap_error_p50_us"], figures["gap_error_p99_us"]) == (0.0, 300.0)
    assert (figures["late_p50_us"], figures["late_p99_us"]) == (0.0, 300.0)


def test_the_start_of_a_load_is_omitted() -> None:
    log = [LogEntry(number, 0, None) for number in range(64)]
    log += [LogEntry(number * 1_000_000, 0, None) for number in range(200, 2_000)]
    figures = constant_arrivals(log, 1_000)
    assert figures is not None
    assert figures["gap_error_p99_9_us"] == 0.0


def test_arrivals_use_kernel_timestamps() -> None:
    # The server wakes up late for every tenth request and reads two requests in the wrong order.
    delays_ns = [200_000 if number % 10 == 0 else 0 for number in range(2_000)]
    log = [LogEntry(n * 1_000_000 + delays_ns[n], 0, None, n * 1_000_000) for n in range(2_000)]
    log[700], log[701] = log[701], log[700]

    figures = constant_arrivals(log, 1_000)
    assert figures is not None
    assert (figures["gap_error_p99_us"], figures["gap_error_p99_9_us"], figures["late_p99_us"]) == (
        0.0,
        0.0,
        0.0,
    )

    assert arrival_timestamps(log) == ([n * 1_000_000 for n in range(200, 2_000)], True)


def test_kernel_timestamps_are_not_mixed_with_read_times() -> None:
    log = [LogEntry(n * 1_000_000 + 50, 0, None, n * 1_000_000) for n in range(1_000)]
    log[0] = LogEntry(50, 0, None)
    assert arrival_timestamps(log)[1], "the first requests may lack kernel timestamps"

    log[500] = LogEntry(500_000_050, 0, None)
    assert arrival_timestamps(log) == ([n * 1_000_000 + 50 for n in range(100, 1_000)], False)
    assert arrival_timestamps([]) == ([], False)


def test_missing_values_of_a_log_are_none(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(
        "id,arrive_ns,hold_ns,finish_ns,write_ns,outcome,queued_ns\n1,9,2,11,,never-answered,\n0,5,2,7,8,answered,4\n"
    )
    assert read_log(path) == [LogEntry(5, 7, 8, 4), LogEntry(9, 11, None, None)]


def test_poisson_arrivals_differ_from_even_arrivals_and_bursts() -> None:
    rng = random.Random(1)
    time_ns, log = 0.0, []
    for _ in range(20_000):
        time_ns += rng.expovariate(1_000) * 1e9
        log.append(LogEntry(int(time_ns), 0, None))

    poisson = poisson_arrivals(log, 1_000)
    even = poisson_arrivals(
        [LogEntry(number * 1_000_000, 0, None) for number in range(20_000)], 1_000
    )
    bursts = poisson_arrivals(
        [LogEntry(n // 64 * 64_000_000 + n % 64, 0, None) for n in range(20_000)], 1_000
    )

    assert poisson is not None
    assert even is not None
    assert bursts is not None
    # The critical distance at 1 % for 18,000 gaps is 0.012.
    assert poisson["ks_distance"] < 0.012
    assert even["ks_distance"] == pytest.approx(0.632, abs=0.001)

    sparse = poisson_arrivals(
        [LogEntry(number * 3_000_000, 0, None) for number in range(120)], 1_000
    )
    assert sparse is not None
    assert sparse["ks_distance"] == pytest.approx(1 - math.exp(-3))

    assert (poisson["dispersion"], even["dispersion"]) == pytest.approx((1.0, 0.0), abs=0.15)
    assert bursts["dispersion"] > 10


def test_too_few_arrivals_have_no_figures() -> None:
    log = [LogEntry(number * 1_000_000, 0, None) for number in range(50)]
    assert constant_arrivals(log, 1_000) is None
    assert poisson_arrivals([], 1_000) is None
    assert server_quantiles_us([]) is None


def test_time_at_the_server_omits_requests_without_a_response() -> None:
    log = [LogEntry(0, 2_000_000, 2_000_000 + number * 1_000) for number in range(100)]
    log.append(LogEntry(0, 9_000_000, None))
    assert server_quantiles_us(log) == {"0.5": 2049.0, "0.99": 2098.0}
    late = {"server_late_p50_us": 49.0, "server_late_p99_us": 98.0, "server_late_p99_9_us": 99.0}
    assert server_lateness_us(log) == late


def test_quantiles_are_nearest_ranks() -> None:
    assert [quantile([3, 1, 2, 4], share) for share in (0.0, 0.25, 0.26, 0.5, 0.99, 1.0)] == [
        1,
        1,
        2,
        2,
        4,
        4,
    ]


def test_connections_to_the_server_port_are_counted_once() -> None:
    table = (
        "  sl  local_address rem_address   st tx_queue\n"
        "   0: 0100007F:2554 00000000:0000 0A 00000000:00000000\n"  # listening
        "   1: 0100007F:2554 0100007F:C350 01 00000000:00000000\n"  # server side
        "   2: 0100007F:C350 0100007F:2554 01 00000000:00000000\n"
        "   3: 0100007F:C351 0100007F:2554 01 00000000:00000000\n"
        "   4: 0100007F:C352 0100007F:2554 06 00000000:00000000\n"  # TIME_WAIT
        "   5: 0100007F:C353 0100007F:2555 01 00000000:00000000\n"  # another server
    )
    assert count_connections(table, 0x2554) == 2


def sampled(number: int, interval_ms: int, p50_us: float, share: float | None) -> dict[str, Any]:
    late_ns = None if share is None else 50_000
    record = {
        "section": "sampler",
        "round": number,
        "seconds": 10,
        "interval_ms": interval_ms,
        "steal_share": None,
    }
    return record | {"p50_us": p50_us, "core_share": share, "late_p50_ns": late_ns}


def test_the_effect_of_sampling_is_paired_within_rounds() -> None:
    # The second round is half as fast with and without sampling.
    text = page(
        [
            sampled(0, 100, 101, 0.001),
            sampled(0, 0, 100, None),
            sampled(1, 0, 200, None),
            sampled(1, 100, 202, 0.003),
        ]
    )

    assert "2 rounds of 10 s" in text
    assert row(text, "no sampling") == ["–", "–", "150 [100–200]", "–"]
    assert row(text, "100 ms") == [
        "0.200 [0.100–0.300]",
        "50 [50–50]",
        "152 [101–202]",
        "1.01 [1.01–1.01]",
    ]
    assert "| 10 ms |" not in text
    assert text.index("| no sampling |") < text.index("| 100 ms |")
