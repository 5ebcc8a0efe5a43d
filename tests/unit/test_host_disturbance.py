"""Which seconds the host disturbed, by invented counters, and what is left of a quantile without
them."""

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
    known = times(*(value for value in responses for _ in range(PER_SECOND)))
    quantiles = {"0.5": FAST_NS, "0.99": SLOW_NS, "0.9999": SLOW_NS}
    return canned_load(
        intervals=tuple(interval(second, value) for second, value in enumerate(responses)),
        response_time_ns=type(known)(
            **{name: getattr(known, name) for name in known.__struct_fields__}
            | {"quantiles": quantiles}
        ),
    )


def nothing(second: int) -> float:
    return 0.0


def watched(
    report: LoadReport, foreign: Cores = nothing, stolen: Cores = nothing, **changes: Any
) -> HostSeconds | None:
    """By counters of a host on which the server uses 0.5 cores and the generator 0.2."""
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


def test_what_the_measurement_itself_uses_disturbs_nobody() -> None:
    report = load(lambda second: second == 4)
    found = watched(report)
    assert found is not None and found.disturbed_s == 0
    assert found.undisturbed_ns == {0.5: FAST_NS, 0.99: SLOW_NS, 0.9999: SLOW_NS}


@pytest.mark.parametrize("cause", ["foreign", "stolen"])
def test_seconds_that_others_took_are_left_out_with_the_one_after(cause: str) -> None:
    """A neighbour with 0.4 of two cores in two seconds, whose queue lasts into the third."""

    def neighbour(second: int) -> float:
        return 0.4 if second in (4, 5) else 0.0

    found = watched(load(lambda second: second in (4, 5, 6)), **{cause: neighbour})
    assert found is not None and found.disturbed_s == 2
    assert found.undisturbed_ns[0.99] == pytest.approx(FAST_NS, rel=0.002)
    assert found.undisturbed_ns[0.9999] is None, "7,000 responses are too few"


def test_slow_seconds_of_a_quiet_host_are_the_servers() -> None:
    found = watched(load(lambda second: True))
    assert found is not None and found.disturbed_s == 0


def test_ticks_and_new_connections_are_no_neighbour() -> None:
    found = watched(load(lambda second: False), foreign=lambda second: 0.11 * CPUS)
    assert found is not None and found.disturbed_s == 0


def test_a_host_that_is_disturbed_throughout_leaves_nothing() -> None:
    found = watched(load(lambda second: True), foreign=lambda second: 1.0)
    assert found is not None and found.disturbed_s == SECONDS
    assert set(found.undisturbed_ns.values()) == {None}


def test_without_counters_nothing_is_known() -> None:
    report = load(lambda second: False)
    assert watched(report, client=[]) is None
    assert watched(report, samples=[Sample(0, 0, Counters(cpu_usage_ns=1))]) is None
    assert watched(load(lambda second: False, seconds=SECONDS + 20)) is None, "read too early"
    assert host_seconds(None, host_counters([], [], CPUS)) is None


def test_beside_an_unknown_server_only_the_hypervisor_disturbs() -> None:
    def sampled(stolen_from: int) -> list[Sample]:
        """All CPUs busy, and half of one stolen from a second on."""
        return [
            Sample(at, 0, Counters(host_busy_ns=CPUS * at, steal_ns=max(0, at - stolen_from) // 2))
            for at in range(0, (SECONDS + 1) * S, S // 2)
        ]

    report = load(lambda second: True)
    for stolen_from, disturbed_s in ((SECONDS * S, 0), (7 * S, 3)):
        found = host_seconds(report, hypervisor_counters(sampled(stolen_from), CPUS))
        assert found is not None and found.disturbed_s == disturbed_s
    assert host_seconds(report, hypervisor_counters([], CPUS)) is None
