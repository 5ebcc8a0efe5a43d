"""Each alarm fires at its limit, with a clear message, and not for a healthy load."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.load_plan import ClosedLoop, LoadModel
from wsgiload.documents.load_report import (
    ConnectionCounts,
    Distribution,
    Interval,
    LoadReport,
    LocalPorts,
    Outcomes,
    Rates,
    RequestsPerConnection,
    TrackedConnections,
)
from wsgiload.findings.alarms import ServerUse, alarms_of_cell, alarms_of_load
from wsgiload.findings.finding import Fired
from wsgiload.findings.over_cells import alarms_over_cells, flat_throughput, runs_differ
from wsgiload.limits.model import Counters
from wsgiload.sampling.resources import memory_growth
from wsgiload.sampling.sampler import Sample
from wsgiload.serving.exchange import CacheProbe

from .canned_load import canned_load
from .filled import distribution, filled_cell, times, verdict
from .filled import outcomes as make_outcomes
from .filled import rates as make_rates

replace = msgspec.structs.replace

NS_PER_MS = 1_000_000
SECOND = Interval(
    start_ns=0,
    length_ns=1_000 * NS_PER_MS,
    scheduled=100,
    sent=100,
    ok=100,
    failed=0,
    p50_ns=None,
    p99_ns=None,
    max_ns=None,
    hdr_v2=None,
)


def healthy(closed: int | None = None, **changes: Any) -> LoadReport:
    """100 responses/s for 10 s, which take 10 ms, or 10 ms times the users in a closed loop."""
    mean_ns = 10 * NS_PER_MS if closed is None else closed * 10 * NS_PER_MS
    quantiles = {"0.5": mean_ns}
    fields = {
        "measured_ns": 10_000 * NS_PER_MS,
        "outcomes": outcomes(),
        "rate": replace(rates(100.0), offered_per_s=None if closed else 100.0),
        "response_time_ns": distribution(count=1_000, mean=mean_ns, quantiles=quantiles),
        "service_time_ns": distribution(quantiles=quantiles),
        "connections": ConnectionCounts(
            opened=closed or 4,
            reused=996,
            closed_by_server=0,
            peak=closed or 4,
            max_connections=4_096,
            requests_per_connection=RequestsPerConnection(min=90, mean=100.0, max=110),
            failures={},
            local_ports=local_ports(28_000),
            tracked=TrackedConnections(before=10, after=800, max=1_000),
        ),
        "intervals": (SECOND,) * 10,
    }

    load = canned_load(**fields | changes)
    if closed is None:
        return load

    model = LoadModel(closed=ClosedLoop(connections=closed))
    return replace(load, plan=replace(load.plan, load=model))


def rates(achieved_per_s: float, goodput_per_s: float | None = None) -> Rates:
    """The rates of a load with 100 offered requests/s."""
    goodput = achieved_per_s if goodput_per_s is None else goodput_per_s
    return make_rates(goodput, offered_per_s=100.0, achieved_per_s=achieved_per_s)


def local_ports(free: int) -> LocalPorts:
    return LocalPorts(source_addresses=None, free=free, needed_at_most=4, warning=None)


def alarm_of(load: LoadReport, name: str) -> Fired:
    """Return the only alarm of a load and check its name and its reason."""
    (alarm,) = alarms_of_load(load)
    assert alarm.check == name

    reason = alarm.reason()
    assert (reason.check, reason.level, reason.fix) == (name, "warn", alarm.fix)
    assert (reason.message, reason.value, reason.limit) == (
        alarm.message,
        alarm.value,
        alarm.limit,
    )
    return alarm


def outcomes(scheduled: int = 1_000, ok: int = 1_000, **changes: int) -> Outcomes:
    return make_outcomes(scheduled, ok, **changes)


def connections(load: LoadReport, **changes: Any) -> LoadReport:
    assert load.connections is not None
    return replace(load, connections=replace(load.connections, **changes))


def requests_per_connection(minimum: int, mean: float, maximum: int) -> RequestsPerConnection:
    return RequestsPerConnection(min=minimum, mean=mean, max=maximum)


@pytest.mark.parametrize("load", [healthy(), healthy(closed=10)], ids=["open", "closed"])
def test_a_healthy_load_raises_no_alarm(load: LoadReport) -> None:
    assert alarms_of_cell(load, ServerUse(0.5, 1.0)) == []


def test_v1_wrong_responses() -> None:
    alarm = alarm_of(
        healthy(outcomes=outcomes(ok=990, http_status=3, bad_body=7)), "wrong-responses"
    )
    assert alarm.message == "10 of 1,000 requests got an incorrect response (status: 3, body: 7)"


@pytest.mark.parametrize(
    ("mean_ms", "message"),
    [
        (50.0, "Little's law accounts for 5 of 10 users"),
        (150.0, "accounts for 15 users, but there are only 10"),
    ],
)
def test_v2_users_missing_from_the_response_times(mean_ms: float, message: str) -> None:
    times = distribution(count=1_000, mean=mean_ms * NS_PER_MS, quantiles={"0.5": 1})
    assert message in alarm_of(healthy(closed=10, response_time_ns=times), "littles-law").message


@pytest.mark.parametrize("mean_ms", [91.0, 109.0])
def test_v2_allows_ten_percent(mean_ms: float) -> None:
    times = distribution(count=1_000, mean=mean_ms * NS_PER_MS, quantiles={"0.5": 1})
    assert alarms_of_load(healthy(closed=10, response_time_ns=times)) == []


def test_v2_counts_one_user_per_http2_stream() -> None:
    load = healthy(closed=5)
    assert alarm_of(healthy(closed=5, response_time_ns=ten_users()), "littles-law")

    plan = replace(load.plan, http_version="http2", streams=2)
    assert alarms_of_load(replace(load, plan=plan, response_time_ns=ten_users())) == []


def ten_users() -> Distribution:
    """Response times that correspond to ten users according to Little's law."""
    return distribution(count=1_000, mean=100 * NS_PER_MS, quantiles={"0.5": 1})


@pytest.mark.parametrize(
    "requests", [requests_per_connection(1, 50.0, 100), requests_per_connection(2, 10.0, 51)]
)
def test_v3_starved_connections(requests: RequestsPerConnection) -> None:
    load = connections(healthy(closed=10), requests_per_connection=requests)
    assert "connections are served unevenly: " in alarm_of(load, "uneven-connections").message


def test_v3_ignores_open_loops_which_prefer_some_connections() -> None:
    requests = requests_per_connection(1, 50.0, 900)
    assert alarms_of_load(connections(healthy(), requests_per_connection=requests)) == []


def test_v4_seconds_without_responses() -> None:
    seconds = (SECOND,) * 10
    without_responses = replace(SECOND, ok=0)
    without_requests = replace(SECOND, scheduled=0, ok=0)

    load = healthy(intervals=(*seconds[:8], without_responses, without_responses))
    assert "no correct response for 2 s of 10 s" in alarm_of(load, "dead-interval").message

    assert alarms_of_load(healthy(intervals=(*seconds, without_requests))) == []


def test_v5_exhausted_ports_and_client_errors() -> None:
    few_ports = connections(healthy(), peak=71, local_ports=local_ports(100))
    assert (
        "71 concurrent connections use most of the 100 available local ports"
        in alarm_of(few_ports, "network-resources").message
    )
    assert alarm_of(few_ports, "network-resources").blame == "client"
    assert alarms_of_load(connections(healthy(), peak=70, local_ports=local_ports(100))) == []

    errors = healthy(outcomes=outcomes(ok=995, client_error=5))
    assert (
        "5 requests failed in the client, usually because ports, file descriptors"
        in alarm_of(errors, "network-resources").message
    )
    assert alarms_of_load(connections(healthy(), local_ports=None)) == []


@pytest.mark.parametrize(("before", "after"), [(801, 10), (10, 801)])
def test_v5_a_nearly_full_connection_tracking_table(before: int, after: int) -> None:
    nearly_full = connections(
        healthy(), tracked=TrackedConnections(before=before, after=after, max=1_000)
    )
    alarm = alarm_of(nearly_full, "network-resources")
    assert (alarm.blame, alarm.value, alarm.limit) == ("client", 0.801, 0.8)
    assert "nearly full (801 of 1,000)" in alarm.message and "nf_conntrack_max" in str(alarm.fix)


def test_v5_without_connection_tracking_or_connection_counts() -> None:
    assert alarms_of_load(connections(healthy(), tracked=None)) == []
    assert alarms_of_load(healthy(connections=None)) == []


def test_v6_one_connection_per_response() -> None:
    closing = connections(healthy(), opened=1_000, closed_by_server=1_000)
    assert "(1,000 connections, 1,000 responses)" in alarm_of(closing, "no-keepalive").message

    requested = replace(closing, plan=replace(closing.plan, keepalive="off"))
    assert alarms_of_load(requested) == []

    few_responses = healthy(outcomes=outcomes(scheduled=19, ok=19))
    all_new = connections(few_responses, opened=19, closed_by_server=19)
    assert alarms_of_load(all_new) == [], "19 responses are too few to tell"

    assert alarms_of_load(connections(healthy(), opened=1_000)) == [], (
        "closed by the client after timeouts"
    )


def test_v8_an_idle_server_that_falls_behind() -> None:
    behind = healthy(rate=rates(90.0, 80.0))
    below, alarm = alarms_of_cell(behind, ServerUse(0.2, 1.0))
    assert (below.check, alarm.check, alarm.value) == ("rate-not-reached", "idle-server", 0.2)
    assert alarm.message.startswith(
        "the server responds to only 90 of 100 requests/s but uses only 20 % of its CPU limit"
    )
    assert alarms_of_cell(behind, ServerUse(0.6, 1.0)) == [below]
    assert alarms_of_cell(behind, ServerUse(None, 1.0)) == [below]
    assert alarms_of_cell(healthy(), ServerUse(0.2, 1.0)) == []


def test_v8_ignores_wrong_responses_on_time() -> None:
    wrong = healthy(
        rate=rates(100.0, 80.0),
        outcomes=outcomes(ok=800, http_status=200),
    )
    assert [alarm.check for alarm in alarms_of_cell(wrong, ServerUse(0.2, 1.0))] == [
        "wrong-responses"
    ]


def test_v9_rate_not_reached() -> None:
    missed = healthy(rate=rates(98.0))
    assert (
        "only 98 of the 100 requests scheduled per second got a response (98.0 %)"
        in alarm_of(missed, "rate-not-reached").message
    )
    assert alarms_of_load(healthy(rate=rates(99.0))) == []


def test_v8_and_v9_ignore_requests_that_may_be_in_flight_at_the_end() -> None:
    low_rates = rates(90.0)
    assert (
        alarms_of_cell(healthy(rate=low_rates, measured_ns=900_000_000), ServerUse(0.2, 1.0)) == []
    )
    assert (
        len(alarms_of_cell(healthy(rate=low_rates, measured_ns=1_000_000_000), ServerUse(0.2, 1.0)))
        == 2
    )

    assert alarms_of_load(healthy(rate=low_rates, measured_ns=900_000_000)) == [], "9 of 90"
    assert (
        "(90.0 %)"
        in alarm_of(healthy(rate=low_rates, measured_ns=1_000_000_000), "rate-not-reached").message
    ), "10 of 100"


def test_v10_runs_with_different_results() -> None:
    alarm = runs_differ("waitress at 100/s", [100.0, 130.0, 70.0])
    assert alarm is not None
    assert "varies by 30 % between 3 runs" in alarm.message
    assert runs_differ("waitress@100", [100.0, 105.0, 95.0]) is None
    assert runs_differ("waitress@100", [100.0]) is None


def test_v11_flat_throughput() -> None:
    alarm = flat_throughput("cheroot", [(50, 500.0), (100, 510.0), (200, 505.0)])
    assert alarm is not None
    assert "flat at 505/s from 50 to 200 users; " in alarm.message
    assert alarm.message.endswith(" allows at most 50 requests at once")
    assert flat_throughput("cheroot", [(50, 500.0), (100, 560.0), (200, 505.0)]) is None
    assert flat_throughput("cheroot", [(50, 500.0), (200, 500.0)]) is None, "two levels are too few"
    assert flat_throughput("cheroot", [(50, 500.0), (60, 500.0), (70, 500.0)]) is None, (
        "similar numbers of users"
    )


def cell(name: str, connections: int | None, goodput: float, **changes: Any) -> CellResult:
    defaults = {
        "id": name,
        "connections": connections,
        "rate": 100.0 if connections is None else None,
        "rate_result": make_rates(goodput),
        "verdict": verdict(),
    }
    return filled_cell(**defaults | changes)


def test_runs_of_one_level_and_levels_of_one_server_are_compared() -> None:
    flat = [cell(f"cheroot@c{users}#1", users, 500.0) for users in (50, 100, 200)]
    varied = [
        cell(f"waitress@100#{run}", None, goodput) for run, goodput in enumerate((60.0, 100.0), 1)
    ]
    assert [alarm.check for alarm in alarms_over_cells([*flat, *varied])] == [
        "run-spread",
        "flat-throughput",
    ]

    invalid = replace(varied[0], verdict=verdict("invalid", "host"))
    assert alarms_over_cells([invalid, varied[1]]) == []


def stalling(*stalls_ms: int) -> LoadReport:
    """A closed loop of one user with a thousand responses of 5 ms and these stalls."""
    responses = times(*[5 * NS_PER_MS] * 1_000, *(ms * NS_PER_MS for ms in stalls_ms))
    return healthy(closed=1, response_time_ns=replace(responses, mean=100.0 * NS_PER_MS))


def test_a_closed_loop_hides_stalls() -> None:
    alarm = next(
        alarm for alarm in alarms_of_load(stalling(300, 300)) if alarm.check == "closed-loop-stalls"
    )
    # 0.6 of 5.6 s, and 2 of 1,002 responses.
    assert alarm.value == pytest.approx(0.107, abs=0.001)
    assert "stalls of up to 30" in alarm.message
    assert "11 % of the users' waiting time" in alarm.message
    assert "only 0.2 % of the responses" in alarm.message


@pytest.mark.parametrize(
    "stalls_ms", [(), (45, 45), (90,), (300,) * 30], ids=["none", "short", "rare", "in the p99"]
)
def test_stalls_that_are_short_rare_or_in_the_p99_are_not_hidden(
    stalls_ms: tuple[int, ...],
) -> None:
    checks = {alarm.check for alarm in alarms_of_load(stalling(*stalls_ms))}
    assert "closed-loop-stalls" not in checks


def test_an_open_loop_hides_no_stalls() -> None:
    load = healthy(response_time_ns=times(*[5 * NS_PER_MS] * 1_000, 300 * NS_PER_MS))
    assert alarms_of_load(load) == []


def memory(*mebibytes: float, length_s: float = 10.0) -> list[Sample]:
    """Evenly spaced samples of a cgroup's memory use."""
    step_ns = length_s * 1e9 / (len(mebibytes) - 1)
    return [
        Sample(round(n * step_ns), 0, Counters(memory_anon_bytes=round(value * 2**20)))
        for n, value in enumerate(mebibytes)
    ]


LEAK_MIB = [30 + n / 2 for n in range(100)]
SATURATION_MIB = [30 + 50 * (1 - math.exp(-n / 10)) for n in range(100)]


def test_a_leak_is_reported_with_the_time_to_the_limit() -> None:
    growth = memory_growth(memory(*LEAK_MIB), 28 << 20, 78 << 20)
    assert growth is not None

    use = ServerUse(0.5, 1.0, memory_growth=growth, memory_limit_bytes=256 << 20)
    (alarm,) = alarms_of_cell(healthy(), use)

    assert (alarm.check, alarm.blame, alarm.value) == ("memory-growth", "server", 50 << 20)
    assert alarm.message == (
        "the server's memory grew by 50 MiB in 10 s and did not level off (51.2 KiB per response); "
        "at this pace, it will reach its limit in 35 s"
    )


@pytest.mark.parametrize(
    ("samples", "before_mib", "after_mib"),
    [
        (memory(*SATURATION_MIB), 30, 80),
        (memory(*LEAK_MIB), 200, 230),
        (memory(*LEAK_MIB), 30, 38),
        (memory(*LEAK_MIB, length_s=3), 30, 80),
        (memory(*LEAK_MIB[::10]), 30, 80),
        ([], 30, 80),
    ],
    ids=["levels off", "a tenth", "little", "too short", "too few samples", "not sampled"],
)
def test_other_memory_growth_is_not_a_leak(
    samples: list[Sample], before_mib: int, after_mib: int
) -> None:
    assert memory_growth(samples, before_mib << 20, after_mib << 20) is None


def test_a_growing_page_cache_is_not_a_leak() -> None:
    cached = [
        Sample(t_ns, 0, Counters(memory_bytes=(30 << 20) + t_ns // 200, memory_anon_bytes=30 << 20))
        for t_ns in range(0, 10**10, 10**8)
    ]
    assert memory_growth(cached, 28 << 20, 78 << 20) is None


def test_growth_from_unknown_memory_use_is_unknown() -> None:
    assert memory_growth(memory(*LEAK_MIB), None, 80 << 20) is None


def test_a_cached_response_is_detected_with_a_new_url() -> None:
    use = ServerUse(0.5, 1.0, cache=CacheProbe(800_000, 24_000_000))
    (alarm,) = alarms_of_cell(healthy(), use)
    assert (alarm.check, alarm.blame, alarm.value) == ("cached-response", "method", 30.0)
    assert "this URL takes 800 µs and a new one 24.0 ms" in alarm.message


@pytest.mark.parametrize(("same_ns", "new_ns"), [(10_000_000, 25_000_000), (200_000, 900_000)])
def test_a_slightly_slower_new_url_is_not_a_cache(same_ns: int, new_ns: int) -> None:
    assert alarms_of_cell(healthy(), ServerUse(0.5, 1.0, cache=CacheProbe(same_ns, new_ns))) == []
