"""The result of a capacity search: its figures, verdict and warnings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from wsgiload.analysis.objective import Judgement, parse_objective
from wsgiload.analysis.threshold import (
    CAPACITY_FIGURES,
    failed_thresholds,
    parse_threshold,
    undecided_thresholds,
)
from wsgiload.capacity_search.result import (
    JudgedTrial,
    ServerSearch,
    exit_code,
    is_unfinished,
    server_result,
)
from wsgiload.documents.attribution_result import AttributionResult, FingerprintResult
from wsgiload.documents.capacity import ServerCapacity
from wsgiload.documents.cell_result import CellFailure, CellResult, ServiceUse
from wsgiload.documents.codec import to_plain
from wsgiload.documents.schema import load_schema
from wsgiload.errors import UsageError
from wsgiload.procedures.capacity import SearchResult
from wsgiload.report.capacity import answer_of, memory_words, rate_words, remarks_of
from wsgiload.statistics.crossing import Counted, Crossing

from .filled import exactly, filled_cell, limits, outcomes, rates, reason, resources, times, verdict

OBJECTIVE = parse_objective(["p99<50ms"])
MIB = 1024**2


def result(
    status: str = "valid",
    blame: str | None = None,
    p99_ms: float = 10.0,
    check: str = "arrival-count",
    **changes: Any,
) -> CellResult:
    reasons = [] if status == "valid" else [reason(check, status, "waited for a core", 1)]
    cell = filled_cell(
        id="waitress@100#1",
        server="waitress",
        rate=100.0,
        verdict=verdict(status, blame, *reasons),
        rate_result=rates(99.0, offered_per_s=100.0),
        response_time_ns=times(*[round(p99_ms * 1e6 / 2)] * 980, *[round(p99_ms * 1e6)] * 20),
        offered_quantiles_ns={"0.5": exactly(5e6), "0.99": exactly(p99_ms * 1e6)},
        outcomes=outcomes(10_000),
        resources=resources(memory_peak_bytes=48 * MIB, cpu_cores_mean=0.5),
        limits=limits(memory_bytes=512 * MIB),
    )
    return msgspec.structs.replace(cell, **changes)


@pytest.mark.parametrize(
    ("trial", "met"),
    [
        (result(), True),
        (result("warn", "host"), True),
        (result(p99_ms=50.0), False),
        (result(outcomes=outcomes(10_000, 9_980)), False),
        (result("invalid", "host"), None),
        (result("invalid", "client", p99_ms=90.0), None),
        (result("invalid", "method"), None),
        (result("invalid", "server"), False),
        (result(verdict=None), None),
    ],
    ids=[
        "met",
        "with a warning",
        "too slow",
        "failures",
        "host",
        "client",
        "method",
        "server",
        "no verdict",
    ],
)
def test_only_a_valid_trial_can_miss(trial: CellResult, met: bool | None) -> None:
    assert OBJECTIVE.judge(trial).met is met


DELAYING_CHECK = {"check": "steal"}


@pytest.mark.parametrize(
    ("trial", "met", "is_doubtful"),
    [
        (result("invalid", "host", p99_ms=30.0, **DELAYING_CHECK), True, False),
        (result("invalid", "host", p99_ms=45.0, **DELAYING_CHECK), True, True),
        (result("invalid", "host", p99_ms=60.0, **DELAYING_CHECK), False, True),
        (result("warn", "host", p99_ms=60.0, check="contaminated"), False, True),
        (result("warn", "host", p99_ms=45.0, **DELAYING_CHECK), True, False),
        (result("invalid", "client", p99_ms=80.0, check="client-stalls"), False, False),
        (
            result("invalid", "host", outcomes=outcomes(10_000, 9_988), **DELAYING_CHECK),
            False,
            True,
        ),
        (
            result("invalid", "host", outcomes=outcomes(10_000, 9_900), **DELAYING_CHECK),
            False,
            False,
        ),
    ],
    ids=[
        "well inside",
        "just inside",
        "missed",
        "contaminated",
        "a warning",
        "far beyond",
        "a few failures",
        "many failures",
    ],
)
def test_a_disturbance_that_delays_responses_is_doubtful_near_the_threshold(
    trial: CellResult, met: bool, is_doubtful: bool
) -> None:
    judgement = OBJECTIVE.judge(trial)
    assert (judgement.met, judgement.is_doubtful) == (met, is_doubtful)


def test_a_disturbance_that_may_shorten_response_times_makes_a_trial_inconclusive() -> None:
    reasons = [reason(check, "invalid") for check in ("steal", "arrival-count")]
    assert OBJECTIVE.judge(result(verdict=verdict("invalid", "host", *reasons))).met is None


def test_a_miss_decided_by_few_requests_is_inconclusive() -> None:
    few = {"outcomes": outcomes(999)}
    short = OBJECTIVE.judge(result(p99_ms=90.0, **few))
    assert (short.met, short.is_too_short) == (None, True)

    assert not JudgedTrial(result(**few), "bracket", short).is_discarded, "the trial was valid"

    assert OBJECTIVE.judge(result(**few)).met is True, (
        "meeting it with few requests is harder than with many"
    )

    failures = outcomes(999, 990)
    assert OBJECTIVE.judge(result(p99_ms=90.0, outcomes=failures)).met is False


def test_an_unstable_server_misses_regardless_of_its_quantiles() -> None:
    message = "UNSTABLE: the offered rate is above the capacity"
    unstable = reason("backlog-growth", "warn", message)
    growing = reason("backlog-growth", "warn", "the requests in the system grew by 0.6 times")
    for stability, met in ((unstable, False), (growing, True)):
        assert OBJECTIVE.judge(result(verdict=verdict("warn", "server", stability))).met is met


def test_an_objective_limits_failures_by_default() -> None:
    assert OBJECTIVE.texts == ["p99<50ms", "error_rate<=0.1%"]
    assert parse_objective(["p99<50ms"], strict=True).texts == ["p99<50ms", "error_rate<=0.001%"]
    assert parse_objective(["p99<50ms", "error_rate<1%"]).texts == ["p99<50ms", "error_rate<1%"]


def schema_errors(capacity: ServerCapacity, **changes: Any) -> list[str]:
    schema = load_schema("capacity-1")
    server = {"$ref": "#/$defs/ServerCapacity", "$defs": schema["$defs"]}
    return [
        f"{error.json_path}: {error.message}"
        for error in Draft202012Validator(server).iter_errors(to_plain(capacity) | changes)
    ]


@pytest.mark.parametrize("texts", [[], ["goodput>=100"], ["p99>50ms"], ["capacity>=100"]])
def test_an_objective_needs_a_figure_that_worsens_with_load(texts: list[str]) -> None:
    with pytest.raises(UsageError):
        parse_objective(texts)


def state(search_result: SearchResult | None, *trials: JudgedTrial) -> ServerSearch:
    return ServerSearch("waitress", list(trials), search_result)


WIDTH = 0.05
# Two trials just below the capacity, of which one missed, and one above.
FOUND = SearchResult(
    (
        Counted(98.0, 10_000, 50, 0.01, 0.9),
        Counted(99.0, 10_000, 150, 0.01, 1.1),
        Counted(102.0, 10_000, 300, 0.01, 1.3),
    ),
    Crossing(100.0, 97.0, 103.0, 20.0),
)


def judged(cell: CellResult) -> JudgedTrial:
    return JudgedTrial(cell, "measure", OBJECTIVE.judge(cell))


def test_a_precise_search_is_valid_and_matches_the_schema() -> None:
    near = judged(result(rate=98.0))
    capacity = server_result(state(FOUND, near), WIDTH)
    assert (capacity.server, capacity.rate_per_s, capacity.interval_95) == (
        "waitress",
        100.0,
        (97.0, 103.0),
    )
    assert (capacity.bracket, capacity.confirmed) == ((98.0, 102.0), (1, 2))
    assert capacity.verdict == verdict()
    assert memory_words(capacity.at_rate) == "48 MiB of 512 MiB"

    not_enforced = result(limits=limits(memory_bytes=512 * MIB, not_enforced=("memory",)))
    assert memory_words(server_result(state(FOUND, judged(not_enforced)), WIDTH).at_rate) == (
        "48 MiB"
    ), "limits that are not enforced are omitted"

    assert exit_code("complete", [capacity]) == 0
    assert schema_errors(capacity) == []

    assert len(schema_errors(capacity, unknown=1, rate_per_s=0)) == 2


def test_a_wide_interval_is_reported() -> None:
    (remark,) = remarks_of(server_result(state(FOUND), 0.02))
    assert "the interval reaches 3 % from the rate, not 2 %" in remark
    assert remark.endswith("after 3 trials (imprecise). Use a longer --budget")


def test_a_search_on_one_side_has_a_bound_or_no_rate() -> None:
    met = server_result(state(SearchResult(FOUND.trials[:1])), WIDTH)
    assert (met.rate_per_s, met.interval_95, met.bracket) == (98.0, (98.0, None), (98.0, None))
    assert [reason.check for reason in met.verdict.reasons] == ["no-upper-bound"]

    missed = server_result(state(SearchResult(FOUND.trials[2:])), WIDTH)
    assert (missed.rate_per_s, missed.bracket) == (None, (None, 102.0))
    assert [reason.check for reason in missed.verdict.reasons] == ["not-met"]
    assert exit_code("complete", [missed]) == 99
    assert schema_errors(met) == schema_errors(missed) == []


FULL_CPU = resources(cpu_cores_mean=0.95, listen_queue_peak=9)
QUEUED = resources(cpu_cores_mean=0.3, listen_queue_peak=9)


def fingerprint(name: str) -> AttributionResult:
    result = FingerprintResult(name=name, sentence="", rule="", source="", value=1, limit=1)
    return AttributionResult(
        **dict.fromkeys(AttributionResult.__struct_fields__) | {"fingerprints": (result,)}  # type: ignore[arg-type]
    )


def database(cores: float) -> ServiceUse:
    """A service with a dedicated core and this mean CPU use."""
    use = resources(cpu_cores_mean=cores)
    return ServiceUse(name="db", cpus=1.0, shares_server_cores=False, resources=use)


@pytest.mark.parametrize(
    ("changes", "limit", "words"),
    [
        ({"resources": FULL_CPU, "limits": limits(cpus=1.0)}, "cpu_limit", "its CPU limit"),
        (
            {"resources": resources(throttled_period_ratio=0.2), "limits": limits(cpus=1.0)},
            "cpu_limit",
            "its CPU limit",
        ),
        (
            {"resources": FULL_CPU, "limits": limits(cpus=4.0)},
            "cpu_per_process",
            "one CPU core per process",
        ),
        (
            {"resources": QUEUED, "limits": limits(cpus=1.0)},
            "workers",
            "its workers (connections waited although CPU time was available)",
        ),
        (
            {"resources": resources(cpu_cores_mean=0.3, listen_queue_peak=9, listen_drops=2)},
            "accept_queue",
            "a full accept queue",
        ),
        (
            {"resources": FULL_CPU, "attribution": fingerprint("memory_pressure")},
            "memory",
            "its memory",
        ),
        (
            {"resources": QUEUED, "limits": limits(cpus=1.0), "services": (database(0.95),)},
            "service",
            "db",
        ),
        (
            {"resources": QUEUED, "limits": limits(cpus=1.0), "services": (database(0.05),)},
            "waiting",
            "waiting for a thread or for a connection to a service (server and services are not "
            "CPU-bound)",
        ),
        (
            {"resources": QUEUED, "limits": limits(cpus=1.0), "services": (database(0.7),)},
            "workers",
            "its workers (connections waited although CPU time was available)",
        ),
        (
            {"resources": FULL_CPU, "limits": limits(cpus=1.0), "services": (database(0.95),)},
            "cpu_limit",
            "its CPU limit",
        ),
        ({"resources": resources(cpu_cores_mean=0.3)}, None, None),
        ({"resources": None}, None, None),
    ],
)
def test_the_result_names_the_limit_of_the_server(
    changes: dict[str, Any], limit: str | None, words: str | None
) -> None:
    missed = [judged(result(p99_ms=60.0, rate=rate, **changes)) for rate in (102.0, 105.0, 125.0)]
    far_above = judged(result(p99_ms=900.0, rate=400.0, resources=FULL_CPU))
    met = judged(result(resources=FULL_CPU))

    capacity = server_result(state(FOUND, met, *missed, far_above), WIDTH)
    assert capacity.limited_by == limit
    assert capacity.limiting_services == (("db",) if limit == "service" else ())

    answer = answer_of(capacity)
    assert answer is not None and answer.startswith("waitress: 100/s (95 % CI ")
    assert answer.endswith(f", limited by {words}" if words else ")")


def test_invalid_trials_are_listed_and_too_many_of_them_invalidate_the_search() -> None:
    disturbed = replace(judged(result("invalid", "host")), is_discarded=True)

    few = server_result(state(FOUND, *[judged(result())] * 9, disturbed), WIDTH)
    assert few.verdict.status == "warn"
    assert "discarded and repeated: waitress at 100/s, run 1" in " ".join(remarks_of(few))

    many = server_result(state(FOUND, *[judged(result())] * 3, disturbed), WIDTH)
    assert (many.verdict.status, many.verdict.blame) == ("invalid", "host")
    assert exit_code("complete", [many], ["waitress"]) == 98


def test_a_fifth_of_the_trials_may_be_doubtful_and_repeated_then_they_count() -> None:
    doubtful = judged(result("invalid", "host", p99_ms=60.0, check="steal"))
    search = state(None, *[judged(result())] * 4)
    search.trials.append(doubtful)
    assert search.should_repeat(doubtful)

    search.discard_last()
    search.trials.append(doubtful)
    assert not search.should_repeat(doubtful), "a second repeat would be two of six trials"
    assert search.should_repeat(JudgedTrial(result(), "measure", Judgement(None, "invalid"))), (
        "inconclusive trials never count"
    )

    counted = server_result(state(FOUND, *search.trials), WIDTH)
    reasons = {reason.check: reason for reason in counted.verdict.reasons}
    assert (
        "1 of the 5 trials that decide the rate missed the objective but were disturbed"
        in reasons["lower-bound"].message
    )
    assert "discarded" not in reasons, "repeated doubtful trials are not reported as discarded"
    assert [trial.doubtful for trial in counted.trials] == [False] * 4 + [True] * 2
    assert rate_words(counted) == "≥ 100/s"
    assert exit_code("complete", [counted]) == 0
    assert exit_code("complete", [counted], ["waitress"]) == 98, (
        "the server may sustain more than its lower bound"
    )

    certain = msgspec.structs.replace(counted, server="certain", verdict=verdict())
    assert exit_code("complete", [counted, certain], ["certain"]) == 99, (
        "the lower bound of another server does not matter"
    )


def test_misses_far_above_the_upper_bound_cause_no_lower_bound_warning() -> None:
    overloaded = judged(result("invalid", "host", p99_ms=900.0, check="steal", rate=315.0))
    at_the_bound = judged(result("invalid", "host", p99_ms=900.0, check="steal", rate=102.0))

    far = server_result(state(FOUND, judged(result()), overloaded), WIDTH)
    assert far.verdict.status == "valid"

    near = server_result(state(FOUND, judged(result()), at_the_bound), WIDTH)
    assert [reason.check for reason in near.verdict.reasons] == ["lower-bound"]


def test_a_server_that_did_not_start_has_no_figures() -> None:
    failed = ServerSearch(
        "waitress",
        failure=CellFailure(step="readiness", message="no correct response", log_tail=""),
        app="cpu:app",
    )

    capacity = server_result(failed, WIDTH)
    assert capacity.app == "cpu:app"
    assert (capacity.rate_per_s, capacity.bracket, capacity.interval_95) == (
        None,
        (None, None),
        None,
    )

    assert schema_errors(capacity) == []
    assert exit_code("complete", [capacity]) == 97
    assert exit_code("interrupted", [capacity]) == 130


@pytest.mark.parametrize(
    ("trials", "progress"),
    [(0, "before its first trial"), (1, "after 1 trial"), (3, "after 3 trials")],
)
def test_an_unfinished_search_is_invalid(trials: int, progress: str) -> None:
    capacity = server_result(state(None, *[judged(result())] * trials), WIDTH)
    assert (capacity.verdict.status, capacity.verdict.blame) == ("invalid", "method")
    (remark,) = remarks_of(capacity)
    assert f"was interrupted {progress} (unfinished, invalid)" in remark
    assert is_unfinished(capacity)
    assert schema_errors(capacity) == []
    assert exit_code("interrupted", [capacity]) == 130
    assert not is_unfinished(server_result(state(FOUND), WIDTH))


def test_an_abandoned_search_has_no_rate() -> None:
    search = state(replace(FOUND, is_abandoned=True))
    search.abandoned = ("host", "4 trials at 105/s were invalid")
    capacity = server_result(search, WIDTH)

    assert (capacity.rate_per_s, capacity.bracket) == (None, (98.0, 102.0))
    assert answer_of(capacity) is None
    assert (capacity.verdict.status, capacity.verdict.blame) == ("invalid", "host")
    assert schema_errors(capacity) == []


def test_a_threshold_within_the_interval_is_undecided() -> None:
    capacity = server_result(state(FOUND), WIDTH)
    for limit, failed, undecided in ((90, 0, 0), (98, 0, 1), (102, 0, 1), (110, 1, 0)):
        threshold = parse_threshold(f"capacity>={limit}", CAPACITY_FIGURES)
        named = [("waitress", capacity)]
        assert len(failed_thresholds([threshold], named)) == failed
        assert len(undecided_thresholds([threshold], named)) == undecided
    assert exit_code("complete", [capacity], [], ["waitress"]) == 98
    assert exit_code("complete", [capacity], ["waitress"]) == 99


def test_a_threshold_on_an_unknown_capacity_fails() -> None:
    threshold = parse_threshold("capacity>=90", CAPACITY_FIGURES)
    capacity = server_result(state(FOUND), WIDTH)
    assert failed_thresholds([threshold], [("waitress", capacity)]) == []
    assert failed_thresholds(
        [threshold],
        [("waitress", msgspec.structs.replace(capacity, rate_per_s=80.0, interval_95=None))],
    ) == ["threshold capacity>=90 failed for waitress"]
    assert failed_thresholds(
        [threshold], [("waitress", msgspec.structs.replace(capacity, rate_per_s=None))]
    )

    with pytest.raises(UsageError, match="unknown figure 'p99'; choose one of capacity"):
        parse_threshold("p99<50ms", CAPACITY_FIGURES)


def test_a_judgement_is_stored_with_the_trial() -> None:
    stored = JudgedTrial(result(), "measure", Judgement(False, "missed p99<50ms")).document()
    assert (stored.stage, stored.met, stored.reason) == ("measure", False, "missed p99<50ms")
