"""Which seconds the host disturbed, according to simulated counters, and the quantiles without
these seconds."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest

from wsgiload._loadgen import Histogram
from wsgiload.attribution.host_disturbance import (
    HostSeconds,
    host_counters,
    host_seconds,
    hypervisor_counters,
)
from wsgiload.documents.load_report import Interval, LoadReport
from wsgiload.limits.model import Counters
from wsgiload.sampling.processes import ClientUsage
from wsgiload.sampling.sampler import Sample

from .canned_load import canned_load
from .filled import times

MS = 1_000_000
S = 1_000 * MS
SECONDS, CPUS = 10, 2
PER_SECOND = 1_000
FAST_NS, SLOW_NS = 1 * MS, 50 * MS

Cores = Callable[[int], float]


def interval(second: int, response_ns: int) -> Interval:
    histogram = Histogram.from_values([response_ns] * PER_SECOND)
    return Interval(
        start_ns=second * S,
        length_ns=S,
        scheduled=PER_SECOND,
        sent=PER_SECOND,
        ok=PER_SECOND,
        failed=0,
        p50_ns=response_ns,
        p99_ns=response_ns,
        max_ns=response_ns,
        hdr_v2=base64.b64encode(histogram.to_hdr_v2()).decode(),
    )


def load(is_slow: Callable[[int], bool], seconds: int = SECONDS) -> LoadReport:
    responses = [SLOW_NS if is_slow(second) else FAST_NS for second in range(seconds)]
    response_times = times(*(value for value in responses for _ in range(PER_SECOND)))
    quantiles = {"0.5": FAST_NS, "0.99": SLOW_NS, "0.9999": SLOW_NS}
    return canned_load(
        intervals=tuple(interval(second, value) for second, value in enumerate(responses)),
        response_time_ns=type(response_times)(
            **{name: getattr(response_times, name) for name in response_times.__struct_fields__}
            | {"quantiles": quantiles}
        ),
    )


def no_cores(second: int) -> float:
    return 0.0


def seconds_of(
    report: LoadReport, foreign: Cores = no_cores, stolen: Cores = no_cores, **changes: Any
) -> HostSeconds | None:
    """The result for a host on which the server uses 0.5 cores and the generator 0.2."""
    busy_ns = stolen_ns = 0.0
    samples = []
    for step in range(-2, 2 * SECONDS + 4):
        at_ns = step * S // 2
        counters = Counters(
            cpu_usage_ns=(step + 2) * S // 4,
            host_busy_ns=round(busy_ns),
            steal_ns=round(stolen_ns),
        )
        samples.append(Sample(at_ns, 0, counters))
        busy_ns += (0.7 + foreign(at_ns // S)) * S / 2
        stolen_ns += stolen(at_ns // S) * S / 2
    client = [ClientUsage(at * S, at * S // 5, 0, None, 1) for at in range(-1, SECONDS + 2)]
    counters = host_counters(changes.get("samples", samples), changes.get("client", client), CPUS)
    return host_seconds(report, counters)


def test_cpu_time_of_the_measurement_itself_is_no_disturbance() -> None:
    report = load(lambda second: second == 4)
    result = seconds_of(report)
    assert result is not None and result.disturbed_s == 0
    assert result.undisturbed_ns == {0.5: FAST_NS, 0.99: SLOW_NS, 0.9999: SLOW_NS}


@pytest.mark.parametrize("cause", ["foreign", "stolen"])
def test_quantiles_exclude_disturbed_seconds_and_the_one_after_them(cause: str) -> None:
    """Another process uses 0.4 of two cores for two seconds; its queue lasts into the third."""

    def other_process(second: int) -> float:
        return 0.4 if second in (4, 5) else 0.0

    result = seconds_of(load(lambda second: second in (4, 5, 6)), **{cause: other_process})
    assert result is not None and result.disturbed_s == 2
    assert result.undisturbed_ns[0.99] == pytest.approx(FAST_NS, rel=0.002)
    assert result.undisturbed_ns[0.9999] is None, "7,000 responses are too few"


def test_slow_seconds_on_a_quiet_host_are_not_disturbed() -> None:
    result = seconds_of(load(lambda second: True))
    assert result is not None and result.disturbed_s == 0


def test_cpu_time_of_ticks_and_new_connections_is_no_disturbance() -> None:
    result = seconds_of(load(lambda second: False), foreign=lambda second: 0.11 * CPUS)
    assert result is not None and result.disturbed_s == 0


def test_a_host_that_is_always_disturbed_leaves_no_quantiles() -> None:
    result = seconds_of(load(lambda second: True), foreign=lambda second: 1.0)
    assert result is not None and result.disturbed_s == SECONDS
    assert set(result.undisturbed_ns.values()) == {None}


def test_without_counters_the_result_is_unknown() -> None:
    report = load(lambda second: False)
    assert seconds_of(report, client=[]) is None
    assert seconds_of(report, samples=[Sample(0, 0, Counters(cpu_usage_ns=1))]) is None
    assert seconds_of(load(lambda second: False, seconds=SECONDS + 20)) is None, (
        "the counters end before the load"
    )
    assert host_seconds(None, host_counters([], [], CPUS)) is None


def test_if_the_server_is_unknown_only_steal_is_a_disturbance() -> None:
    def sampled(stolen_from: int) -> list[Sample]:
        """All CPUs are busy, and half a CPU is stolen from ``stolen_from`` on."""
        return [
            Sample(at, 0, Counters(host_busy_ns=CPUS * at, steal_ns=max(0, at - stolen_from) // 2))
            for at in range(0, (SECONDS + 1) * S, S // 2)
        ]

    report = load(lambda second: True)
    for stolen_from, disturbed_s in ((SECONDS * S, 0), (7 * S, 3)):
        result = host_seconds(report, hypervisor_counters(sampled(stolen_from), CPUS))
        assert result is not None and result.disturbed_s == disturbed_s

    assert host_seconds(report, hypervisor_counters([], CPUS)) is None
