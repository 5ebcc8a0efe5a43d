"""One configuration is recommended if the data support it; otherwise the refusal says what is
needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from wsgiload.analysis.objective import parse_objective
from wsgiload.analysis.recommend import recommend, recommend_capacity, t_interval
from wsgiload.documents.answer import NoRecommendation, RecommendedConfiguration
from wsgiload.documents.capacity import ServerCapacity, UseAtCapacity
from wsgiload.documents.cell_result import CellFailure, CellResult
from wsgiload.documents.resources import ResourceUse
from wsgiload.limits import Counters
from wsgiload.report.recommendation import recommendation_words
from wsgiload.sampling.resources import summarise
from wsgiload.sampling.sampler import Sample

from .filled import exactly, filled_cell, limits, outcomes, rates, reason, resources, verdict

replace = msgspec.structs.replace

MIB = 1024**2
OBJECTIVE = parse_objective(["p99<100ms"])
# Six runs that differ by a few percent, as is typical.
FACTORS = (0.97, 1.0, 1.03, 0.99, 1.02, 1.01)


def cell(server: str, rate: float, run: int, p99_ms: float, **changes: Any) -> CellResult:
    plain = {
        "id": f"{server}@{rate:g}#{run}",
        "server": server.partition("-")[0],
        "size": server.partition("-")[2] or None,
        "rate": rate,
        "run": run,
        "verdict": verdict(),
        "rate_result": rates(rate, offered_per_s=rate),
        "offered_quantiles_ns": {"0.5": exactly(5e6), "0.99": exactly(p99_ms * 1e6)},
        "outcomes": outcomes(5_000),
        "resources": resources(memory_peak_bytes=128 * MIB),
        "limits": limits(memory_bytes=512 * MIB),
    }
    return filled_cell(**plain | changes)


def runs(
    server: str, p99_ms_by_rate: dict[float, float], count: int = 6, **changes: Any
) -> list[CellResult]:
    return [
        cell(server, rate, run, p99_ms * FACTORS[run - 1], **changes)
        for rate, p99_ms in p99_ms_by_rate.items()
        for run in range(1, count + 1)
    ]


def recommended(cells: Sequence[CellResult]) -> RecommendedConfiguration:
    result = recommend(cells, OBJECTIVE)
    assert isinstance(result, RecommendedConfiguration)
    return result


def refused(cells: Sequence[CellResult]) -> NoRecommendation:
    result = recommend(cells, OBJECTIVE)
    assert isinstance(result, NoRecommendation)
    return result


INVALID = {"verdict": verdict("invalid", "host")}


def test_the_largest_rate_is_recommended_with_interval_and_headroom() -> None:
    cells = runs("small", {100: 30.0, 200: 400.0}) + runs("large", {100: 35.0, 200: 60.0})
    result = recommended(cells)
    assert (result.server, result.rate_per_s, result.runs, result.runner_up) == (
        "large",
        200,
        6,
        "small",
    )
    assert result.interval_95 is not None
    assert result.interval_95[0] < 60e6 < result.interval_95[1]

    text = recommendation_words(result, "p99<100ms")
    assert text.startswith(
        "Recommended: large, which meets p99<100ms at 200/s (p99 60.2 ms, 95 % CI 58.8 ms to "
    )
    assert "; peak memory 128 MiB of 512 MiB (75.0 % free)" in text


def test_memory_without_an_enforced_limit_has_no_headroom() -> None:
    unenforced = {"limits": limits(memory_bytes=512 * MIB, not_enforced=("memory",))}
    result = recommended(runs("only", {100: 30.0}, **unenforced))
    assert "; peak memory 128 MiB, without a limit" in recommendation_words(result, "p99<100ms")


def test_a_quantile_with_few_requests_beyond_it_has_a_warning() -> None:
    cells = runs("only", {100: 30.0})
    many = recommend(cells, OBJECTIVE)
    few = recommend([*cells[:-1], replace(cells[-1], outcomes=outcomes(650))], OBJECTIVE)
    assert isinstance(many, RecommendedConfiguration)
    assert isinstance(few, RecommendedConfiguration)
    assert (many.min_requests_beyond, few.min_requests_beyond) == (50, 6)

    warning = (
        "in one run, only 6 requests lay beyond p99, so use a longer --duration for a more precise "
        "result"
    )
    assert warning in recommendation_words(few, "p99<100ms")
    assert "lay beyond" not in recommendation_words(many, "p99<100ms")

    none = replace(few, min_requests_beyond=0)
    assert "; in one run, no request lay beyond p99" in recommendation_words(none, "p99<100ms")


def test_of_equally_lean_configurations_the_faster_is_recommended() -> None:
    result = recommended(runs("slow", {100: 60.0}) + runs("quick", {100: 30.0}))
    assert (result.server, result.also_meets, result.tied) == ("quick", ("slow",), ())
    text = recommendation_words(result, "p99<100ms")
    assert text.startswith(
        "Recommended: quick, the leanest of 2 configurations that meet p99<100ms at"
    )
    assert text.endswith(" slow also meets the objective.")


def test_equally_lean_and_fast_configurations_are_tied() -> None:
    result = recommended(runs("one", {100: 30.0}) + runs("other", {100: 30.5}))
    assert (result.server, result.tied) == ("one", ("other",))
    text = recommendation_words(result, "p99<100ms")
    assert text.endswith(
        " other also meets the objective; other needs no more resources and performs equally well."
    )


def test_the_leanest_configuration_that_meets_the_objective_is_recommended() -> None:
    """Even if others are faster: 60 ms is enough for an objective of 100 ms."""
    large = {"resources": resources(memory_peak_bytes=150 * MIB)}
    cells = (
        runs("lean", {100: 60.0}) + runs("large", {100: 30.0}, **large) + runs("slow", {100: 70.0})
    )
    result = recommended(cells)
    assert (result.server, result.also_meets, result.tied) == ("lean", ("slow", "large"), ())
    text = recommendation_words(result, "p99<100ms")
    assert text.endswith(" slow and large also meet the objective.")


def measured_bytes(anon_mib: int, total_mib: int) -> ResourceUse:
    """The resources of a server whose other memory is page cache."""
    counters = Counters(
        memory_bytes=total_mib * MIB,
        memory_anon_bytes=anon_mib * MIB,
        memory_shared_bytes=0,
        memory_file_bytes=(total_mib - anon_mib) * MIB,
    )
    return summarise([Sample(0, 0, counters)], (0, 1), None)


def test_page_cache_does_not_make_a_server_less_lean() -> None:
    """``fat`` would not even start in 64 MiB; ``lean`` would."""
    cells = runs("fat", {100: 30.0}, resources=measured_bytes(171, 179))
    cells += runs("lean", {100: 30.0}, resources=measured_bytes(22, 400))
    result = recommended(cells)

    assert (result.server, result.memory.peak_bytes) == ("lean", 22 * MIB)
    text = recommendation_words(result, "p99<100ms")
    assert "peak memory 22 MiB of 512 MiB (95.7 % free)" in text


def using(cores: float | None, peak: int = 128) -> dict[str, Any]:
    """CPU cores used, of a limit of one, and peak memory in MiB."""
    used = resources(memory_peak_bytes=peak * MIB, cpu_cores_mean=cores)
    return {"resources": used, "limits": limits(cpus=1.0, memory_bytes=512 * MIB)}


def test_with_similar_memory_the_least_cpu_time_is_recommended() -> None:
    cells = (
        runs("busy", {100: 30.0}, **using(0.6))
        + runs("calm", {100: 60.0}, **using(0.4))
        + runs("unknown", {100: 20.0}, **using(None))
        + runs("light", {100: 20.0}, **using(0.2, peak=200))
    )
    result = recommended(cells)
    assert (result.server, result.also_meets, result.tied) == (
        "calm",
        ("busy", "unknown", "light"),
        (),
    )
    text = recommendation_words(result, "p99<100ms")
    assert "(75.0 % free), CPU 0.40 of 1 core (60.0 % free). busy, unknown and " in text

    near = recommended(runs("quick", {100: 30.0}, **using(0.43)) + cells)
    assert near.server == "quick", "a difference of 7 % in CPU time is a tie"


def test_cpu_time_without_an_enforced_limit_has_no_headroom() -> None:
    unenforced = using(0.5) | {"limits": limits(cpus=1.0, not_enforced=("cpus", "memory"))}
    text = recommendation_words(recommended(runs("only", {100: 30.0}, **unenforced)), "p99<100ms")
    assert "; peak memory 128 MiB, without a limit, CPU 0.50 cores." in text


def test_with_similar_memory_the_size_with_fewer_workers_and_threads_is_recommended() -> None:
    double = {"resources": resources(memory_peak_bytes=256 * MIB)}
    sizes = [runs(f"gthread-{size}", {100: 30.0}) for size in ("w1-t4-stock", "w1-t1-stock")]
    result = recommended(
        [*sizes[0], *sizes[1], *runs("gthread-w2-t1-stock", {100: 30.0}, **double)]
    )

    assert (result.server, result.tied, result.also_meets) == (
        "gthread-w1-t1-stock",
        (),
        ("gthread-w1-t4-stock", "gthread-w2-t1-stock"),
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("gthread-w1-t4", "gthread-w2-t1"),  # fewer workers, but more threads
        ("gthread-w1-t1", "waitress-t4"),  # threads of different servers are not comparable
        ("gthread-w1-t1-stock", "gthread-w1-t4-tuned"),
    ],
)
def test_incomparable_sizes_are_tied(one: str, other: str) -> None:
    result = recommended(runs(one, {100: 30.0}) + runs(other, {100: 30.0}))
    assert {result.server, *result.tied} == {one, other}


def test_a_smaller_size_that_needs_more_memory_is_not_recommended() -> None:
    larger = {"resources": resources(memory_peak_bytes=256 * MIB)}
    result = recommended(
        runs("gthread-t1", {100: 30.0}, **larger) + runs("gthread-t4", {100: 30.0})
    )
    assert result.server == "gthread-t4", "memory takes precedence over threads"


@pytest.mark.parametrize("count", [1, 3])
def test_too_few_runs_allow_no_recommendation(count: int) -> None:
    refusal = refused(runs("small", {100: 400.0}, count) + runs("large", {100: 30.0}, count))
    assert "4 valid runs" in refusal.reason
    assert "--runs 6" in refusal.needs


def test_invalid_runs_of_a_potential_best_allow_no_recommendation() -> None:
    refusal = refused(
        runs("small", {100: 30.0, 200: 300.0}) + runs("large", {100: 30.0, 200: 50.0}, **INVALID)
    )
    assert (
        "the result of large at 100/s is uncertain: only 0 of 6 runs are conclusive; 4 are needed"
        in refusal.reason
    )


def test_invalid_runs_of_a_worse_configuration_are_ignored() -> None:
    cells = (
        runs("small", {100: 300.0})
        + runs("small", {200: 300.0}, **INVALID)
        + runs("large", {100: 30.0, 200: 50.0})
    )
    result = recommended(cells)
    assert result.server == "large"


def undecided_at_200(server: str, p99_ms: float, **changes: Any) -> list[CellResult]:
    """Meets the objective at 100/s, and at 200/s in five of six runs."""
    missed = cell(server, 200, 6, 400.0, **changes)
    return [
        *runs(server, {100: p99_ms}, **changes),
        *runs(server, {200: 60.0}, 5, **changes),
        missed,
    ]


LARGE = {"resources": resources(memory_peak_bytes=150 * MIB)}


@pytest.mark.parametrize(("p99_ms", "changes"), [(60.0, {}), (30.0, LARGE)])
def test_no_recommendation_if_another_configuration_may_meet_a_higher_rate(
    p99_ms: float, changes: dict[str, Any]
) -> None:
    refusal = refused(
        runs("sure", {100: 30.0, 200: 400.0}) + undecided_at_200("maybe", p99_ms, **changes)
    )
    assert refusal.reason == "the result of maybe at 200/s is uncertain: met in only 5 of 6 runs"


def test_the_recommended_configuration_may_meet_a_higher_rate_itself() -> None:
    result = recommended(runs("sure", {100: 60.0, 200: 400.0}) + undecided_at_200("maybe", 30.0))
    assert (result.server, result.rate_per_s, result.also_meets) == ("maybe", 100, ("sure",))


STOLEN = {"verdict": verdict("invalid", "host", reason("steal", "invalid", "2 % was taken"))}


def test_an_objective_met_in_disturbed_runs_counts_with_a_warning() -> None:
    cells = runs("small", {100: 30.0, 200: 400.0}) + runs("large", {100: 35.0, 200: 60.0}, **STOLEN)
    result = recommended(cells)
    assert (result.server, result.rate_per_s, result.disturbed) == ("large", 200, 6)
    text = recommendation_words(result, "p99<100ms")
    assert (
        "the generator or the host was disturbed in 6 of 6 runs, which can only lengthen response times"
        in text
    )


def test_an_objective_missed_in_disturbed_runs_is_undecided() -> None:
    refusal = refused(
        runs("small", {100: 30.0, 200: 300.0}) + runs("large", {100: 150.0, 200: 150.0}, **STOLEN)
    )
    assert (
        "the result of large at 100/s is uncertain: missed in 6 of 6 runs, but 6 of these were "
        "disturbed (2 % was taken" in refusal.reason
    )


def test_a_miss_in_a_short_run_counts() -> None:
    short = {"outcomes": outcomes(500)}
    near = [cell("short", 50, run, 90.0 if run <= 4 else 110.0, **short) for run in range(1, 7)]
    assert (
        "the result of short at 50/s is uncertain: met in only 4 of 6 runs" in refused(near).reason
    )


def test_disturbed_misses_are_counted_separately() -> None:
    mixed = [cell("mixed", 100, run, 150.0, **(STOLEN if run == 1 else {})) for run in (1, 2)]
    refusal = refused(mixed + [cell("mixed", 100, run, 30.0) for run in range(3, 7)])
    assert "missed in 2 of 6 runs, but 1 of these was disturbed (2 % was taken" in refusal.reason


def test_only_the_last_attempt_of_a_run_counts() -> None:
    reruns = [cell("large", 100, run, 60.0 * FACTORS[run - 1]) for run in range(1, 7)]
    cells = runs("small", {100: 300.0}) + runs("large", {100: 150.0}, **STOLEN) + reruns
    result = recommended(cells)
    assert (result.server, result.runs, result.disturbed) == ("large", 6, 0)


def test_a_confidence_interval_beyond_the_objective_is_not_safe() -> None:
    near = [
        cell("near", 100, run, p99_ms)
        for run, p99_ms in enumerate((60.0, 99.0, 70.0, 98.0, 99.5, 97.0), 1)
    ]
    assert "the 95 % CI of p99 includes values that miss the objective" in refused(near).reason


@pytest.mark.parametrize("order", [("p50<7ms", "p99<100ms"), ("p99<100ms", "p50<7ms")])
def test_every_quantile_interval_counts_and_that_of_the_highest_is_shown(
    order: tuple[str, str],
) -> None:
    def with_medians(medians_ms: tuple[float, ...]) -> list[CellResult]:
        return [
            replace(
                one,
                offered_quantiles_ns={
                    **(one.offered_quantiles_ns or {}),
                    "0.5": exactly(p50_ms * 1e6),
                },
            )
            for one, p50_ms in zip(runs("both", {100: 60.0}), medians_ms, strict=True)
        ]

    objective = parse_objective(order)
    safe = recommend(with_medians((5.0, 5.1, 4.9, 5.0, 5.1, 4.9)), objective)
    assert isinstance(safe, RecommendedConfiguration)
    assert safe.figure == "p99"
    assert safe.interval_95 is not None
    assert safe.interval_95[0] < 60e6 < safe.interval_95[1]
    near = recommend(with_medians((3.0, 6.9, 4.0, 6.8, 6.9, 6.9)), objective)
    assert isinstance(near, NoRecommendation)
    assert (
        "met in all 6 runs, but the 95 % CI of p50 includes values that miss the objective"
        in near.reason
    )


def test_failures_under_load_are_misses_and_not_invalid() -> None:
    died = {
        "failure": CellFailure(step="load", message="killed", log_tail=""),
        "verdict": verdict("invalid", "server"),
    }
    result = recommended(runs("hungry", {100: 10.0}, **died) + runs("modest", {100: 30.0}))
    assert result.server == "modest"


def test_an_objective_that_no_configuration_meets_is_missed() -> None:
    refusal = refused(runs("one", {100: 300.0}) + runs("other", {100: 200.0}))
    assert refusal.is_missed
    assert "no configuration meets p99<100ms and error_rate<=0.1% at 100/s" in recommendation_words(
        refusal, ""
    )


def test_a_rate_above_a_missed_rate_does_not_count() -> None:
    cells = runs("odd", {100: 30.0, 200: 300.0, 300: 30.0}) + runs(
        "even", {100: 30.0, 200: 40.0, 300: 300.0}
    )
    result = recommended(cells)
    assert (result.server, result.rate_per_s) == ("even", 200)


def test_the_interval_over_runs_is_a_t_interval_of_logarithms() -> None:
    interval = t_interval([1.0, math.e**2])
    assert interval is not None
    # Two runs: mean 1, standard deviation sqrt 2, and t = 12.706 with one degree of freedom.
    assert [math.log(limit) for limit in interval] == pytest.approx(
        [1 - 12.706, 1 + 12.706], abs=1e-3
    )
    assert t_interval([1.0]) is None


def searched(
    server: str, rate: float | None, interval: tuple[float, float] | None, **changes: Any
) -> ServerCapacity:
    used = UseAtCapacity(
        memory_peak_bytes=128 * MIB, memory_limit_bytes=512 * MIB, cpu_cores_mean=1.0
    )

    entry = ServerCapacity(
        server=server,
        rate_per_s=rate,
        bracket=(rate, None if rate is None else rate * 1.02),
        confirmed=(6, 6) if rate is not None else None,
        verdict=verdict(),
        interval_95=interval,
        limited_by=None,
        at_rate=used,
        failure=None,
        trials=(),
    )

    return replace(entry, **changes)


def test_the_largest_capacity_is_recommended_unless_intervals_overlap() -> None:
    low, high = searched("low", 100.0, (97.0, 104.0)), searched("high", 200.0, (190.0, 205.0))
    result = recommend_capacity([low, high])
    assert isinstance(result, RecommendedConfiguration)
    assert (result.server, result.runner_up) == ("high", "low")
    assert (
        "meets p99<50ms at 200/s (95 % CI of the capacity 190/s to 205/s"
        in recommendation_words(result, "p99<50ms")
    )

    near = recommend_capacity([searched("near", 195.0, (185.0, 199.0)), high])
    assert isinstance(near, NoRecommendation)
    assert "overlap" in near.reason


def test_a_search_without_a_rate_names_the_best_server_so_far() -> None:
    open_ends = [searched("a", None, None, bracket=(90.0, 95.0)), searched("b", None, None)]
    result = recommend_capacity(open_ends)
    assert isinstance(result, NoRecommendation)
    assert result.reason.endswith("the best so far is a, which met it at 90/s in the search")
    assert not result.is_missed

    missed = recommend_capacity(open_ends[1:])
    assert isinstance(missed, NoRecommendation)
    assert (missed.reason, missed.is_missed) == (
        "no rate was found for any configuration",
        True,
    )


def test_no_recommendation_if_another_capacity_may_be_larger() -> None:
    doubtful = verdict("warn", "host", reason("lower-bound", value=0.1))
    clean = searched("clean", 300.0, (290.0, 305.0))
    other = searched("other", 200.0, (190.0, 210.0), verdict=doubtful)
    result = recommend_capacity([clean, other])

    assert isinstance(result, NoRecommendation)
    assert "other may have a higher capacity" in result.reason
    assert isinstance(
        recommend_capacity(
            [replace(clean, verdict=doubtful), replace(other, verdict=clean.verdict)]
        ),
        RecommendedConfiguration,
    )


def test_an_invalid_search_allows_no_recommendation() -> None:
    result = recommend_capacity(
        [searched("low", None, None, **INVALID), searched("high", 200.0, (190.0, 205.0))]
    )
    assert isinstance(result, NoRecommendation)
    assert "low is invalid (host)" in result.reason
