"""The lines of the live view."""

from __future__ import annotations

from typing import cast

import msgspec
import pytest

from wsgiload.cli._live_frame import Stage, rows
from wsgiload.documents.load_report import Outcomes
from wsgiload.loads.drive import LoadProgress, ProgressFile
from wsgiload.loads.options import Level, LoadSettings, load_plan
from wsgiload.loads.request import Request
from wsgiload.sampling.running_load import LoadState, RecentRates, RunningLoad
from wsgiload.sampling.sampler import Sampler

S = 1_000_000_000
NONE_FAILED = Outcomes(
    scheduled=0,
    ok=0,
    http_status=0,
    bad_body=0,
    reset=0,
    stale=0,
    refused=0,
    connect_timeout=0,
    timeout=0,
    dropped=0,
    unfinished=0,
    client_error=0,
)
STAGE = Stage("[1/2] a at 100/s, run 1", "b at 100/s, run 1", left_s=30.0, since_ns=0)


def running(**changes: object) -> RunningLoad:
    level = Level(rate_per_s=100.0)
    plan = load_plan("http://127.0.0.1/", Request(), LoadSettings(duration_ns=10 * S), level, 1)
    load = RunningLoad(plan, cast(ProgressFile, None))
    for name, value in changes.items():
        setattr(load, name, value)
    return load


def progress(ok: int = 0, **changes: object) -> LoadProgress:
    defaults = LoadProgress(
        at_ns=0,
        start_ns=1 * S,
        measure_from_ns=3 * S,
        measure_to_ns=13 * S,
        outcomes=msgspec.structs.replace(NONE_FAILED, scheduled=ok, ok=ok),
        scheduled=ok,
        answered=ok,
        p50_ns=1_500_000,
        p99_ns=9_000_000,
    )
    return msgspec.structs.replace(defaults, **changes)


def lines_of(
    state: LoadState, now_ns: int = 5 * S, load: RunningLoad | None = None
) -> dict[str, str]:
    return dict(rows(STAGE, load or running(), state, now_ns))


@pytest.mark.parametrize(
    ("now_s", "phase"),
    [
        (0.5, "starting the load"),
        (1.9, "warming up, 1 of 2 s"),
        (7.0, "measuring, 4 of 10 s"),
        (14.0, "waiting for the last responses"),
    ],
)
def test_the_phase_follows_the_clock(now_s: float, phase: str) -> None:
    lines = lines_of(LoadState(progress()), round(now_s * S))
    assert lines["now"] == f"[1/2] a at 100/s, run 1: {phase}"


def test_an_unknown_value_is_a_dash_and_not_zero() -> None:
    lines = lines_of(LoadState(), load=running(sampler=cast(Sampler, object())))
    assert lines["rate"] == "offered –, achieved –"
    assert lines["latency"] == lines["failures"] == "–"
    assert lines["server"] == "CPU – cores, memory –"


def test_a_quantile_needs_enough_requests() -> None:
    few = lines_of(LoadState(progress(ok=999)))
    assert few["latency"] == "p50 1.50 ms, p99 needs at least 1,000 requests (999 requests so far)"
    enough = lines_of(LoadState(progress(ok=1_000)))
    assert enough["latency"] == "p50 1.50 ms, p99 9.00 ms (1,000 requests so far)"


def test_failures_are_counted_by_kind_and_rank_above_responses() -> None:
    outcomes = msgspec.structs.replace(NONE_FAILED, scheduled=2_000, ok=1_000, timeout=3, reset=7)
    lines = lines_of(LoadState(progress(outcomes=outcomes, p99_ns=None)))
    assert lines["failures"] == "reset 7, timeout 3 (1.0 %)"
    assert "p99 infinite (1,010 requests so far)" in lines["latency"]
    assert lines_of(LoadState(progress(ok=5)))["failures"] == "none"


def test_resource_use_is_shown_with_its_limits() -> None:
    load = running(sampler=cast(Sampler, object()), cpus=1.0, memory_limit_bytes=512 << 20)
    state = LoadState(progress(), 100.0, 99.0, cpu_cores=0.5, memory_bytes=64 << 20)
    lines = lines_of(state, load=load)
    assert lines["rate"] == "offered 100/s, achieved 99/s"
    assert lines["server"] == "CPU 0.50 of 1 core, memory 64 MiB of 512 MiB"


def test_the_next_trial_and_the_remaining_time() -> None:
    assert lines_of(LoadState(), 10 * S)["next"] == "b at 100/s, run 1, about 20 s left"
    assert lines_of(LoadState(), 40 * S)["next"] == "b at 100/s, run 1", "the estimate has run out"

    last = Stage("[2/2] b at 100/s, run 1", None)
    assert dict(rows(last, None, None, 0)) == {
        "now": "[2/2] b at 100/s, run 1: starting",
        "next": "the result",
    }

    race = Stage("a", standing="a leads b after 2 rounds")
    assert dict(rows(race, None, None, 0))["standing"] == "a leads b after 2 rounds"


def test_rates_cover_about_the_last_second() -> None:
    recent = RecentRates()
    assert recent.rates_per_s(0, (0,)) is None
    assert recent.rates_per_s(S // 2, (100,)) == (200.0,)
    for half in range(2, 20):
        rates = recent.rates_per_s(half * S // 2, (100 + half * 10,))
    assert rates == (20.0,)
    assert recent.rates_per_s(19 * S // 2, (290,)) == (20.0,), "the time has not advanced"
