"""Numbers are formatted without claiming more than is known."""

from __future__ import annotations

from typing import Literal, get_args, get_type_hints

import msgspec
import pytest

from wsgiload.documents.capacity import CapacityTrial
from wsgiload.documents.cell_result import CellFailure
from wsgiload.documents.load_report import Bounds, Outcomes, QuantileUncertainty, Reason, Verdict
from wsgiload.report import words


def outcomes(**counts: int) -> Outcomes:
    kinds = dict.fromkeys(Outcomes.__struct_fields__, 0) | counts
    return msgspec.convert(kinds | {"scheduled": sum(counts.values())}, Outcomes)


@pytest.mark.parametrize(
    ("duration_ns", "text"),
    [
        (None, "–"),
        (0, "0 ns"),
        (512, "512 ns"),
        (999.6, "1.00 µs"),
        (12_345, "12.3 µs"),
        (999_600, "1.00 ms"),
        (12_345_678, "12.3 ms"),
        (100_000_000, "100 ms"),
        (1_000_000_000, "1.00 s"),
        (75_400_000_000, "75.4 s"),
        (1_234_000_000_000, "1,230 s"),
    ],
)
def test_durations_have_three_digits(duration_ns: float | None, text: str) -> None:
    assert words.format_duration_ns(duration_ns) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (None, "–"),
        (0, "0 %"),
        (1, "100 %"),
        (0.007, "0.7 %"),
        (0.9, "90.0 %"),
        (0.9996, "99.96 %"),
        (0.99996, "99.996 %"),
        (0.99999999, "> 99.999 %"),
        (0.0004, "0.04 %"),
        (0.0000001, "< 0.001 %"),
    ],
)
def test_ratios_never_round_to_all_or_nothing(ratio: float | None, text: str) -> None:
    assert words.format_ratio(ratio) == text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (None, "–"),
        (0, "0 B"),
        (1000, "1000 B"),
        (512 << 20, "512 MiB"),
        (50_646_220, "48.3 MiB"),
        ((1 << 30) - 1, "1,024 MiB"),
        (3 << 29, "1.50 GiB"),
    ],
)
def test_sizes_have_binary_units(size_bytes: float | None, text: str) -> None:
    assert words.format_bytes(size_bytes) == text


@pytest.mark.parametrize(
    ("per_s", "text"), [(None, "–"), (2000, "2,000"), (99.5, "99.5"), (1998.6, "1,999")]
)
def test_rates_have_a_thousands_separator(per_s: float | None, text: str) -> None:
    assert words.format_rate(per_s) == text


def test_a_known_quantile_is_a_number() -> None:
    assert (
        words.format_bounds(Bounds(low=18_400_000, high=18_400_000), 0.99, outcomes(ok=1000))
        == "18.4 ms"
    )


def test_a_quantile_cut_off_by_a_timeout_is_a_lower_bound() -> None:
    bounds = Bounds(low=1_000_000_000, high=None)
    assert words.format_bounds(bounds, 0.99, outcomes(ok=980, timeout=20)) == ">= 1.00 s"


@pytest.mark.parametrize("low", [None, 18_400_000])
def test_a_quantile_that_failures_exceed_is_infinite(low: int | None) -> None:
    text = words.format_bounds(Bounds(low=low, high=None), 0.999, outcomes(ok=993, http_status=7))
    assert text == "infinite (0.7 % failed)"


@pytest.mark.parametrize(
    ("cell_id", "text"),
    [
        ("waitress@500#1", "waitress at 500/s, run 1"),
        ("waitress-t4-py3.13@1500#2.3", "waitress-t4-py3.13 at 1,500/s, run 2, attempt 3"),
        ("waitress@c1#1", "waitress at 1 connection, run 1"),
        ("waitress@c100#12", "waitress at 100 connections, run 12"),
        ("load", "load"),
    ],
)
def test_a_cell_is_named_in_words(cell_id: str, text: str) -> None:
    assert words.trial_words(cell_id) == text


@pytest.mark.parametrize(
    ("cell_id", "attempt"),
    [("waitress@500#1", ", attempt 1"), ("waitress@500#2.3", ""), ("load", "")],
)
def test_the_first_attempt_is_named_where_attempts_are_listed(cell_id: str, attempt: str) -> None:
    assert words.attempt_words(cell_id) == words.trial_words(cell_id) + attempt


def test_a_quantile_between_two_bounds_shows_both() -> None:
    bounds = Bounds(low=18_400_000, high=21_000_000)
    assert words.format_bounds(bounds, 0.99, outcomes(ok=1000)) == "18.4 ms to 21.0 ms"
    assert words.format_bounds(None, 0.99, None) == "–"


def test_a_quantile_needs_ten_requests_beyond_it() -> None:
    assert words.enough_requests(1000, 0.99)
    assert words.enough_requests(10_000, 0.999)
    assert not words.enough_requests(999, 0.99)
    assert not words.enough_requests(None, 0.5)


Unresolved = Literal["too_few_effective_requests", "below_noise_floor"]


def uncertainty(reason: Unresolved | None) -> QuantileUncertainty:
    return QuantileUncertainty(
        interval_95_ns=None if reason == "too_few_effective_requests" else (17_900_000, 19_200_000),
        effective_requests=700.0,
        resolution_status="resolved",
        reason=reason,
    )


def test_a_quantile_needs_enough_effective_requests() -> None:
    assert words.may_be_shown(None, 1000, 0.99)
    assert words.may_be_shown(uncertainty(None), 1000, 0.99)
    assert not words.may_be_shown(uncertainty(None), 999, 0.99)
    assert not words.may_be_shown(uncertainty("too_few_effective_requests"), 100_000, 0.99)


def test_a_quantile_is_shown_with_its_uncertainty() -> None:
    assert (
        words.with_uncertainty("18.4 ms", uncertainty(None))
        == "18.4 ms (95 % CI 17.9 ms to 19.2 ms)"
    )
    near = words.with_uncertainty("18.4 ms", uncertainty("below_noise_floor"))
    assert near == "<= 18.4 ms (upper bound, because it is close to the noise floor)"
    assert words.with_uncertainty("18.4 ms", None) == "18.4 ms"
    assert words.with_uncertainty("–", uncertainty(None)) == "–"


def test_an_interval_is_a_range_or_unbounded() -> None:
    assert words.format_interval([17_900_000, 19_200_000]) == "17.9 ms to 19.2 ms"
    assert words.format_interval([17_900_000, None]) == "from 17.9 ms, unbounded"
    assert words.format_interval(None) == "–"


def test_verdicts_name_their_blame_and_checks() -> None:
    reasons = tuple(
        Reason(check=check, level="warn", message="found", value=None, limit=None)
        for check in ("send-lag", "run-queue-wait")
    )
    valid = Verdict(status="valid", blame=None, reasons=())

    assert words.verdict_words(valid) == "valid"

    warn = Verdict(status="warn", blame=None, reasons=reasons)
    assert words.verdict_words(warn) == "warn (run-queue-wait, send-lag)"

    invalid = Verdict(status="invalid", blame="client", reasons=reasons)
    assert words.verdict_words(invalid) == "invalid: client (run-queue-wait, send-lag)"
    assert words.verdict_words(None) == "not measured"


def test_failures_counts_lists_and_quantiles_are_named() -> None:
    failure = CellFailure(step="launch", message=" port in use ", log_tail=None)
    assert words.failure_words(failure) == "failed: launch: port in use"

    assert [words.plural(count, "run") for count in (1, 6)] == ["1 run", "6 runs"]
    assert [words.join_words(list(names)) for names in ("", "a", "ab", "abc")] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]
    assert [words.quantile_name(quantile) for quantile in (0.5, 0.99, 0.999)] == [
        "p50",
        "p99",
        "p99.9",
    ]
    assert [words.format_seconds(seconds) for seconds in (10, 0.25, 0.0005, None)] == [
        "10 s",
        "250 ms",
        "500 µs",
        "–",
    ]
    assert [words.format_cpu_list(cpus) for cpus in ("0-1", (0, 1), None)] == ["0-1", "0,1", "any"]


def test_every_stage_of_a_capacity_search_has_a_name() -> None:
    stages = get_args(get_type_hints(CapacityTrial)["stage"])

    assert set(words.SEARCH_PHASES) == set(stages)
