"""What coincided with slow requests, from invented samples and flights."""

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
from wsgiload.attribution.evidence import Evidence, balance_of, stalls_of
from wsgiload.attribution.exposure import Tail, exposure, overlaps, tail_of
from wsgiload.attribution.fingerprints import find_fingerprints
from wsgiload.attribution.steps import Step, steps_of
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
# What may be said only of an intervention.
CAUSAL = re.compile(
    r"\b(because|caus\w*|due to|bottleneck|leads? to|results? in|thanks to)\b", re.IGNORECASE
)


def sample(at_ms: int, **counters: int) -> Sample:
    return Sample(at_ms * MS, 0, Counters(**counters))


def busy(step: int, **extra: int) -> Step:
    """A tenth of a second in which the server used half of it and nothing was wrong."""
    usual = {
        "cpu_usage_ns": 50 * MS,
        "nr_periods": 1,
        "nr_throttled": 0,
        "psi_cpu_some_ns": 0,
        "psi_cpu_full_ns": 0,
    }
    values: dict[str, Any] = (
        usual | {"psi_memory_some_ns": 0, "queue_before": 0, "queue_after": 0} | extra
    )
    return Step(step * 100 * MS, (step + 1) * 100 * MS, **values)


def evidence(*odd: Step, **facts: Any) -> Evidence:
    """Five seconds, in which some steps were not as usual."""
    places = {step.start_ns: step for step in odd}
    return Evidence(
        steps=[places.get(index * 100 * MS, busy(index)) for index in range(50)], **facts
    )


def names(given: Evidence) -> list[str]:
    return [found.name for found in find_fingerprints(given)]


# --- steps


def test_steps_are_at_least_a_period_and_what_is_read_rarely_stays_what_it_was() -> None:
    samples = [sample(at, cpu_usage_ns=at * MS // 2) for at in range(0, 300, 10)]
    samples[0] = sample(0, cpu_usage_ns=0, psi_memory_some_ns=5)
    samples[15] = sample(150, cpu_usage_ns=75 * MS, psi_memory_some_ns=9)
    steps = steps_of(samples)
    assert [step.length_ns for step in steps] == [90 * MS] * 3
    assert [step.psi_memory_some_ns for step in steps] == [0, 4, 0]
    assert [step.share("cpu_usage_ns") for step in steps] == [0.5] * 3
    assert steps[0].nr_periods is None and steps[0].share("nr_periods") is None


def test_a_sample_that_was_held_up_counts_for_nothing() -> None:
    wide = Sample(100 * MS, 0, Counters(cpu_usage_ns=999 * MS), width_ns=11 * MS)
    steps = steps_of([sample(0, cpu_usage_ns=0), wide, sample(200, cpu_usage_ns=20 * MS)])
    assert [(step.length_ns, step.cpu_usage_ns) for step in steps] == [(200 * MS, 20 * MS)]


def test_a_counter_that_went_back_is_unknown() -> None:
    (step,) = steps_of([sample(0, nr_throttled=5), sample(100, nr_throttled=3)])
    assert step.nr_throttled is None and not step.is_throttled


# --- spans


def test_a_throttled_stretch_begins_a_period_before_it_was_booked() -> None:
    steps = [busy(0), busy(1), busy(2, nr_throttled=1), busy(3, nr_throttled=1), busy(4)]
    assert spans.throttled(steps) == [(100 * MS, 400 * MS)]


def test_a_wait_beside_throttling_is_not_held_against_others() -> None:
    waited = {"psi_cpu_full_ns": 90 * MS}
    steps = [busy(0, **waited), busy(1, nr_throttled=1, **waited), busy(2), busy(3, **waited)]
    assert spans.cpu_wait(steps) == [(300 * MS, 400 * MS)]


def test_a_wait_while_the_kernel_finds_room_is_not_held_against_others() -> None:
    waits = [busy(index, psi_cpu_full_ns=60 * MS, psi_memory_some_ns=50 * MS) for index in range(6)]
    assert spans.cpu_wait(waits) == []
    assert names(evidence(*waits)) == ["memory_pressure"]


def test_a_pause_needs_a_queue_an_idle_server_and_no_pressure() -> None:
    still = {"cpu_usage_ns": 1 * MS, "queue_before": 2, "queue_after": 3}
    usual = [busy(index) for index in range(5)]
    assert spans.total_ns(spans.paused([*usual, busy(5, **still)])) == 100 * MS
    after_a_lull, was_accepted = {"queue_before": 0}, {"queue_after": 1}
    for other in (
        after_a_lull,
        was_accepted,
        {"cpu_usage_ns": 20 * MS},
        {"psi_cpu_some_ns": 50 * MS},
        {"nr_throttled": 1},
    ):
        assert spans.paused([*usual, busy(5, **(still | other))]) == []
    idle = [replace(step, cpu_usage_ns=MS) for step in usual]
    assert spans.paused([*idle, busy(5, **still)]) == []


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
def test_a_request_overlaps_what_happened_while_it_was_in_flight(
    flight: tuple[int, int], expected: bool
) -> None:
    assert overlaps(flight, [(100, 200), (300, 310)]) is expected


def flights(
    count: int, slow_every: int, gap_ns: int = 10 * MS
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    every = [
        (index * gap_ns, index * gap_ns + (80 * MS if index % slow_every == 0 else MS))
        for index in range(count)
    ]
    return [one for one in every if one[1] - one[0] > MS], every


def test_shares_of_the_slowest_and_of_all_with_bounds() -> None:
    slowest, every = flights(1000, 100)
    hit = [(start - 5 * MS, start + 20 * MS) for start, _ in slowest[:8]]
    found = exposure("throttled", Tail(tuple(slowest), tuple(every), 0.01), hit)
    assert found.slowest.value == 0.8
    # Three fast requests after each begin inside, the one before it is over; the slow one is among
    # the sample too.
    assert found.all.value == pytest.approx(0.024, abs=0.002)
    assert found.slowest.low is not None and found.slowest.high is not None
    assert found.slowest.low < 0.8 <= found.slowest.high
    assert found.risk_ratio is not None and found.risk_ratio.value > 100


def test_a_short_measurement_has_no_bounds_and_everything_is_everything() -> None:
    slowest, every = flights(100, 10)
    found = exposure("throttled", Tail(tuple(slowest), tuple(every), 0.1), [(-S, 9 * S)])
    assert (found.slowest.value, found.all.value) == (1.0, 1.0)
    assert (found.slowest.low, found.risk_ratio) == (None, None)


def test_bounds_hold_the_truth_about_as_often_as_they_say() -> None:
    import random

    chance = random.Random(7)
    held = 0
    for trial in range(60):
        slow_ones, span = [], []
        for second in range(60):
            # Requests of one second share their fate, as they do in a queue.
            is_hit = chance.random() < 0.5
            slow_ones += [
                (second * S + index * MS, second * S + index * MS + 1) for index in range(5)
            ]
            span += [(second * S, second * S + S // 2)] if is_hit else []
        share = exposure(
            "throttled", Tail(tuple(slow_ones), tuple(slow_ones), 0.01), span, seed=trial
        ).slowest
        assert share.low is not None and share.high is not None
        held += share.low <= 0.5 <= share.high
    assert held >= 52, f"{held} of 60; 57 are expected"


def test_the_slowest_are_one_in_a_hundred_or_ten() -> None:
    load = canned_load(
        outcomes=outcomes(5000),
        flights=Flights(slowest=tuple((i, i + 9) for i in range(200)), sample=((0, 1),)),
    )
    tail = tail_of(load)
    assert tail is not None and (len(tail.slowest), tail.slowest_share) == (50, 0.01)
    few = tail_of(msgspec.structs.replace(load, outcomes=outcomes(20)))
    assert few is not None and (len(few.slowest), few.slowest_share) == (10, 0.5)
    assert tail_of(msgspec.structs.replace(load, flights=None)) is None


# --- fingerprints


def test_nothing_wrong_is_nothing_found() -> None:
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
def test_each_cause_has_its_fingerprint_and_no_other(name: str) -> None:
    assert names(CAUSES[name]) == [name]


def test_every_fingerprint_has_a_name_in_the_report() -> None:
    assert set(coincidence.NAMES) == set(CAUSES)


def test_throttling_in_less_than_a_hundredth_of_the_periods_is_not_told() -> None:
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
    ids=["once", "at its usual CPU use", "mostly at its usual CPU use"],
)
def test_stalls_without_more_cpu_use_are_no_busy_pauses(
    cpu_ms: int, stalls: tuple[tuple[int, int], ...]
) -> None:
    odd = [busy(index, cpu_usage_ns=cpu_ms * MS) for index in (7, 8)]
    assert names(evidence(*odd, stalls=stalls)) == []


def test_a_stall_is_ten_times_as_slow_as_the_median() -> None:
    every = ((0, 99 * MS), (S, S + 150 * MS), (S + 100 * MS, S + 250 * MS), (4 * S, 5 * S))
    load = canned_load(response_time_ns=times(12 * MS), flights=Flights(slowest=every, sample=()))
    assert stalls_of(load) == ((S, S + 250 * MS), (4 * S, 5 * S))
    assert stalls_of(msgspec.structs.replace(load, response_time_ns=times(16 * MS))) == (
        (4 * S, 5 * S),
    )
    assert stalls_of(None) == ()


def test_balance_counts_workers_that_started_no_others() -> None:
    def usage(cpu_s: dict[int, float], parents: dict[int, int]) -> list[ProcessUsage]:
        return [
            ProcessUsage(at * S, pid, parents[pid], round(used * at * S), 0, 1)
            for pid, used in cpu_s.items()
            for at in (0, 4)
        ]

    even = balance_of(usage({1: 0, 2: 0.3, 3: 0.3}, {1: 0, 2: 1, 3: 1}), (0, 9 * S))
    assert even is not None and (even.workers, even.imbalance) == (2, 0.0)
    assert balance_of(usage({1: 0, 2: 0.3}, {1: 0, 2: 1}), (0, 9 * S)) is None


def test_foreign_cpu_is_what_neither_the_server_nor_measuring_it_used() -> None:
    samples = [
        sample(at, host_busy_ns=at * 15 * MS // 10, cpu_usage_ns=at * 5 * MS // 10)
        for at in (0, 5000, 10000)
    ]
    client = [ClientUsage(at * S, at * S // 5, 0, None, 1) for at in (0, 5, 10)]
    assert other_cpu_ratio(samples, client, 2) == pytest.approx(0.4)
    assert other_cpu_ratio(samples, (), 2) is None


# --- all of it


def measured() -> Measured:
    """Ten seconds; every second the quota stops the server for 200 ms, and the requests meant for
    then are slow."""
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


def test_a_stored_cell_is_explained_in_words_that_say_what_coincided() -> None:
    found = attribute(measured())
    assert found is not None
    assert [one.name for one in found.fingerprints] == ["throttling"]
    (throttled,) = found.exposures
    assert throttled.slowest.value == 1.0 and 0.2 < throttled.all.value < 0.4
    assert attribute(measured()) == found
    cell = Cell(filled_cell(attribution=found))
    (said,) = [coincidence.sentence(cell, one) for one in coincidence.fingerprints(cell)]
    assert said.startswith(
        "Coincided with this load: CPU throttling. The CPU limit throttled the server in 20 % of "
        "the CPU periods. 100 % of the slowest 1 % of requests overlapped a throttled period, "
        "compared with"
    )
    assert coincidence.names(cell) == "CPU throttling"
    assert attribute(replace(measured(), samples=())) is None


def texts(path: Path) -> list[str]:
    """The string literals of a module that are no docstrings."""
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


def test_no_sentence_names_a_reason() -> None:
    folder = Path(wsgiload.attribution.__file__).parent
    files = [path for path in folder.glob("*.py") if path.name != "intervention.py"]
    files.append(Path(coincidence.__file__))
    assert len(files) >= 6
    said = [text for path in files for text in texts(path)]
    assert any("dropped" in text for text in said)
    assert [text for text in said if CAUSAL.search(text)] == []
    for given in CAUSES.values():
        assert not any(CAUSAL.search(found.sentence) for found in find_fingerprints(given))
