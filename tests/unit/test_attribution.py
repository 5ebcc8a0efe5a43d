"""Attribution of slow requests, with synthetic samples and flights."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

import wsgiload.attribution
from wsgiload.attribution import Measured, attribute, other_cpu_ratio, spans
from wsgiload.attribution.evidence import (
    Evidence,
    Tail,
    balance_of,
    exposure,
    overlaps,
    stalls_of,
    tail_of,
)
from wsgiload.attribution.fingerprints import FINGERPRINTS, find_fingerprints
from wsgiload.attribution.spans import Step, steps_of
from wsgiload.documents.load_report import ClockReading, Flights
from wsgiload.limits.model import Counters
from wsgiload.report import coincidence
from wsgiload.report.cells import Cell
from wsgiload.sampling.processes import ClientUsage, ProcessUsage
from wsgiload.sampling.sampler import Sample

from .canned_load import canned_load
from .filled import filled_cell, outcomes, times

MS = 1_000_000
S = 1_000 * MS
# Causal claims need an intervention.
CAUSAL = re.compile(
    r"\b(because|caus\w*|due to|bottleneck|leads? to|results? in|thanks to)\b", re.IGNORECASE
)


def sample(at_ms: int, **counters: int) -> Sample:
    return Sample(at_ms * MS, 0, Counters(**counters))


def busy(step: int, **extra: int) -> Step:
    """A normal step of 0.1 s in which the server used half a core."""
    normal = {
        "cpu_usage_ns": 50 * MS,
        "nr_periods": 1,
        "nr_throttled": 0,
        "psi_cpu_some_ns": 0,
        "psi_cpu_full_ns": 0,
    }
    values: dict[str, Any] = (
        normal | {"psi_memory_some_ns": 0, "queue_before": 0, "queue_after": 0} | extra
    )
    return Step(step * 100 * MS, (step + 1) * 100 * MS, **values)


def evidence(*abnormal: Step, **facts: Any) -> Evidence:
    """Evidence of five seconds with these abnormal steps."""
    by_start_ns = {step.start_ns: step for step in abnormal}
    return Evidence(
        steps=[by_start_ns.get(index * 100 * MS, busy(index)) for index in range(50)], **facts
    )


def names(observed: Evidence) -> list[str]:
    return [fingerprint.name for fingerprint in find_fingerprints(observed)]


# --- steps


def test_steps_span_at_least_a_period_and_keep_rarely_read_counters() -> None:
    samples = [sample(at, cpu_usage_ns=at * MS // 2) for at in range(0, 300, 10)]
    samples[0] = sample(0, cpu_usage_ns=0, psi_memory_some_ns=5)
    samples[15] = sample(150, cpu_usage_ns=75 * MS, psi_memory_some_ns=9)
    steps = steps_of(samples)
    assert [step.length_ns for step in steps] == [90 * MS] * 3
    assert [step.psi_memory_some_ns for step in steps] == [0, 4, 0]
    assert [step.share("cpu_usage_ns") for step in steps] == [0.5] * 3
    assert steps[0].nr_periods is None and steps[0].share("nr_periods") is None


def test_a_delayed_sample_is_ignored() -> None:
    delayed = Sample(100 * MS, 0, Counters(cpu_usage_ns=999 * MS), width_ns=11 * MS)
    steps = steps_of([sample(0, cpu_usage_ns=0), delayed, sample(200, cpu_usage_ns=20 * MS)])
    assert [(step.length_ns, step.cpu_usage_ns) for step in steps] == [(200 * MS, 20 * MS)]


def test_a_decreased_counter_is_unknown() -> None:
    (step,) = steps_of([sample(0, nr_throttled=5), sample(100, nr_throttled=3)])
    assert step.nr_throttled is None and not step.is_throttled


# --- spans


def test_a_throttled_span_starts_one_period_before_it_was_counted() -> None:
    steps = [busy(0), busy(1), busy(2, nr_throttled=1), busy(3, nr_throttled=1), busy(4)]
    assert spans.throttled(steps) == [(100 * MS, 400 * MS)]


def test_cpu_wait_during_throttling_is_not_contention() -> None:
    waited = {"psi_cpu_full_ns": 90 * MS}
    steps = [busy(0, **waited), busy(1, nr_throttled=1, **waited), busy(2), busy(3, **waited)]
    assert spans.cpu_wait(steps) == [(300 * MS, 400 * MS)]


def test_cpu_wait_during_memory_reclaim_is_not_contention() -> None:
    waits = [busy(index, psi_cpu_full_ns=60 * MS, psi_memory_some_ns=50 * MS) for index in range(6)]
    assert spans.cpu_wait(waits) == []
    assert names(evidence(*waits)) == ["memory_pressure"]


def test_a_server_that_was_stopped_most_of_the_time_was_paused() -> None:
    stopped = {"cpu_usage_ns": 0, "queue_before": 2, "queue_after": 3}
    steps = [busy(0, cpu_usage_ns=2 * MS), *(busy(index, **stopped) for index in range(1, 6))]
    assert spans.total_ns(spans.paused(steps)) == 500 * MS


def test_a_pause_needs_a_queue_an_idle_server_and_no_cpu_pressure() -> None:
    paused = {"cpu_usage_ns": 1 * MS, "queue_before": 2, "queue_after": 3}
    normal = [busy(index) for index in range(5)]

    assert spans.total_ns(spans.paused([*normal, busy(5, **paused)])) == 100 * MS

    queue_was_empty, was_drained = {"queue_before": 0}, {"queue_after": 1}
    for other in (
        queue_was_empty,
        was_drained,
        {"cpu_usage_ns": 20 * MS},
        {"psi_cpu_some_ns": 50 * MS},
        {"nr_throttled": 1},
    ):
        assert spans.paused([*normal, busy(5, **(paused | other))]) == []

    idle = [replace(step, cpu_usage_ns=MS) for step in normal]
    assert spans.paused([*idle, busy(5, **paused)]) == []


# --- exposures


@pytest.mark.parametrize(
    ("flight", "expected"),
    [
        ((0, 99), False),
        ((0, 100), True),
        ((150, 160), True),
        ((200, 300), True),
        ((201, 299), False),
        ((301, 400), True),
    ],
)
def test_a_request_overlaps_spans_while_it_is_in_flight(
    flight: tuple[int, int], expected: bool
) -> None:
    assert overlaps(flight, [(100, 200), (300, 310)]) is expected


def flights(
    count: int, slow_every: int, gap_ns: int = 10 * MS
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    all_flights = [
        (index * gap_ns, index * gap_ns + (80 * MS if index % slow_every == 0 else MS))
        for index in range(count)
    ]

    return [flight for flight in all_flights if flight[1] - flight[0] > MS], all_flights


def test_exposure_gives_both_shares_with_bounds() -> None:
    slowest, all_flights = flights(1000, 100)
    throttled = [(start - 5 * MS, start + 20 * MS) for start, _ in slowest[:8]]
    result = exposure("throttled", Tail(tuple(slowest), tuple(all_flights), 0.01), throttled)
    assert result.slowest.value == 0.8
    # Each throttled span overlaps three of all requests: the slow one and the next two.
    assert result.all.value == pytest.approx(0.024, abs=0.002)
    assert result.slowest.low is not None and result.slowest.high is not None
    assert result.slowest.low < 0.8 <= result.slowest.high
    assert result.risk_ratio is not None and result.risk_ratio.value > 100


def test_a_short_measurement_has_shares_without_bounds() -> None:
    slowest, all_flights = flights(100, 10)
    result = exposure("throttled", Tail(tuple(slowest), tuple(all_flights), 0.1), [(-S, 9 * S)])
    assert (result.slowest.value, result.all.value) == (1.0, 1.0)
    assert (result.slowest.low, result.risk_ratio) == (None, None)


def test_confidence_bounds_have_their_nominal_coverage() -> None:
    import random

    rng = random.Random(7)
    covered = 0
    for trial in range(60):
        slowest, throttled = [], []
        for second in range(60):
            # Requests of one second are affected together, as in a queue.
            is_throttled = rng.random() < 0.5
            slowest += [
                (second * S + index * MS, second * S + index * MS + 1) for index in range(5)
            ]
            throttled += [(second * S, second * S + S // 2)] if is_throttled else []
        share = exposure(
            "throttled", Tail(tuple(slowest), tuple(slowest), 0.01), throttled, seed=trial
        ).slowest
        assert share.low is not None and share.high is not None
        covered += share.low <= 0.5 <= share.high
    assert covered >= 52, f"{covered} of 60; expected 57"


def test_the_tail_is_one_percent_or_at_least_ten_requests() -> None:
    load = canned_load(
        outcomes=outcomes(5000),
        flights=Flights(
            slowest=tuple((start, start + 9) for start in range(200)), sample=((0, 1),)
        ),
    )
    tail = tail_of(load)
    assert tail is not None and (len(tail.slowest), tail.slowest_share) == (50, 0.01)

    few = tail_of(msgspec.structs.replace(load, outcomes=outcomes(20)))
    assert few is not None and (len(few.slowest), few.slowest_share) == (10, 0.5)
    assert tail_of(msgspec.structs.replace(load, flights=None)) is None


# --- fingerprints


def test_normal_steps_have_no_fingerprint() -> None:
    assert names(evidence()) == []
    assert names(Evidence()) == []


CAUSES = {
    "oom_kill": evidence(oom_kills=1),
    "throttling": evidence(
        *(busy(index, nr_throttled=1, psi_cpu_full_ns=60 * MS) for index in range(10, 20))
    ),
    "contention": evidence(
        *(busy(index, psi_cpu_some_ns=70 * MS, psi_cpu_full_ns=60 * MS) for index in range(5))
    ),
    "pause": evidence(
        busy(7, cpu_usage_ns=0, queue_before=1, queue_after=9),
        busy(8, cpu_usage_ns=0, queue_before=9, queue_after=19),
    ),
    "busy_pause": evidence(
        *(busy(index, cpu_usage_ns=95 * MS) for index in (7, 8, 27, 28)),
        stalls=((690 * MS, 880 * MS), (2_700 * MS, 2_900 * MS)),
    ),
    "backlog_overflow": evidence(listen_drops=3, backlog=1, late_connects=(2, 1, 0)),
    "memory_pressure": evidence(*(busy(index, psi_memory_some_ns=50 * MS) for index in range(6))),
    "worker_imbalance": evidence(
        balance=balance_of(
            [
                ProcessUsage(at * S, pid, 1, at * S * (pid == 2), 0, 1)
                for pid in (2, 3)
                for at in (0, 5)
            ],
            (0, S * 9),
        )
    ),
}


@pytest.mark.parametrize("name", CAUSES)
def test_each_cause_has_only_its_fingerprint(name: str) -> None:
    assert names(CAUSES[name]) == [name]


def test_every_fingerprint_is_provoked() -> None:
    assert set(FINGERPRINTS) == set(CAUSES)


def test_throttling_in_under_one_percent_of_periods_is_not_reported() -> None:
    rare = evidence(busy(3, nr_throttled=1))
    assert (
        names(replace(rare, steps=[busy(index) for index in range(100, 260)] + list(rare.steps)))
        == []
    )
    assert names(rare) == ["throttling"]


@pytest.mark.parametrize(
    ("cpu_ms", "stalls"),
    [
        (95, ((690 * MS, 880 * MS),)),
        (50, ((690 * MS, 880 * MS), (2_700 * MS, 2_900 * MS))),
        (95, ((690 * MS, 880 * MS), *((at * S, at * S + 150 * MS) for at in (1, 3, 4)))),
    ],
    ids=["once", "at its normal CPU use", "mostly at its normal CPU use"],
)
def test_stalls_without_increased_cpu_use_are_not_busy_pauses(
    cpu_ms: int, stalls: tuple[tuple[int, int], ...]
) -> None:
    abnormal = [busy(index, cpu_usage_ns=cpu_ms * MS) for index in (7, 8)]
    assert names(evidence(*abnormal, stalls=stalls)) == []


def test_a_stall_is_a_request_ten_times_slower_than_the_median() -> None:
    slowest = ((0, 99 * MS), (S, S + 150 * MS), (S + 100 * MS, S + 250 * MS), (4 * S, 5 * S))
    load = canned_load(response_time_ns=times(12 * MS), flights=Flights(slowest=slowest, sample=()))
    assert stalls_of(load) == ((S, S + 250 * MS), (4 * S, 5 * S))
    assert stalls_of(msgspec.structs.replace(load, response_time_ns=times(16 * MS))) == (
        (4 * S, 5 * S),
    )
    assert stalls_of(None) == ()


def test_balance_compares_processes_without_children() -> None:
    def usage(cpu_s: dict[int, float], parents: dict[int, int]) -> list[ProcessUsage]:
        return [
            ProcessUsage(at * S, pid, parents[pid], round(cpu_share * at * S), 0, 1)
            for pid, cpu_share in cpu_s.items()
            for at in (0, 4)
        ]

    even = balance_of(usage({1: 0, 2: 0.3, 3: 0.3}, {1: 0, 2: 1, 3: 1}), (0, 9 * S))
    assert even is not None and (even.workers, even.imbalance) == (2, 0.0)
    assert balance_of(usage({1: 0, 2: 0.3}, {1: 0, 2: 1}), (0, 9 * S)) is None


def test_foreign_cpu_excludes_the_server_and_the_client() -> None:
    samples = [
        sample(at, host_busy_ns=at * 15 * MS // 10, cpu_usage_ns=at * 5 * MS // 10)
        for at in (0, 5000, 10000)
    ]
    client = [ClientUsage(at * S, at * S // 5, 0, None, 1) for at in (0, 5, 10)]
    assert other_cpu_ratio(samples, client, 2) == pytest.approx(0.4)
    assert other_cpu_ratio(samples, (), 2) is None


# --- the whole attribution


def measured() -> Measured:
    """Ten seconds in which the quota throttles the server for 200 ms every second.

    The requests scheduled during throttling are slow.
    """
    counters = {"periods": 0, "throttled": 0}
    samples = []
    for step in range(101):
        samples.append(
            sample(
                step * 100,
                nr_periods=counters["periods"],
                nr_throttled=counters["throttled"],
                cpu_usage_ns=step * 50 * MS,
            )
        )
        counters["periods"] += 1
        counters["throttled"] += step % 10 in (4, 5)

    slow = tuple((second * S + 450 * MS, second * S + 590 * MS) for second in range(10))
    fast = tuple((index * 10 * MS, index * 10 * MS + MS) for index in range(1000))

    load = canned_load(
        clock=ClockReading(monotonic_ns=0, realtime_ns=0, drift_ns=0),
        measured_ns=10 * S,
        outcomes=outcomes(1000),
        connect_time_ns=None,
        flights=Flights(slowest=slow, sample=fast),
    )
    assert load.plan.phases.warmup_ns == 0
    return Measured(load, samples)


def test_the_sentence_of_a_cell_names_what_coincided() -> None:
    attribution = attribute(measured())
    assert attribution is not None
    assert [fingerprint.name for fingerprint in attribution.fingerprints] == ["throttling"]
    (throttled,) = attribution.exposures
    assert throttled.slowest.value == 1.0 and 0.2 < throttled.all.value < 0.4

    assert attribute(measured()) == attribution

    cell = Cell(filled_cell(attribution=attribution))
    (sentence,) = [
        coincidence.sentence(cell, fingerprint) for fingerprint in coincidence.fingerprints(cell)
    ]
    assert sentence.startswith(
        "Coincided with this load: CPU throttling. The CPU limit throttled the server in 20 % of "
        "the CPU periods. 100 % of the slowest 1 % of requests overlapped a throttled period, "
        "compared with"
    )
    assert coincidence.names(cell) == "CPU throttling"
    assert attribute(replace(measured(), samples=())) is None


def texts(path: Path) -> list[str]:
    """The string literals of a module, without docstrings."""
    tree = ast.parse(path.read_text())
    documented = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }

    constants = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return [str(node.value) for node in constants if id(node) not in documented]


def test_no_sentence_claims_a_cause() -> None:
    package = Path(wsgiload.attribution.__file__).parent
    files = [path for path in package.glob("*.py") if path.name != "intervention.py"]
    files.append(Path(coincidence.__file__))
    assert len(files) >= 6

    literals = [text for path in files for text in texts(path)]
    assert any("dropped" in text for text in literals)
    assert [text for text in literals if CAUSAL.search(text)] == []

    for observed in CAUSES.values():
        assert not any(
            CAUSAL.search(fingerprint.sentence) for fingerprint in find_fingerprints(observed)
        )
