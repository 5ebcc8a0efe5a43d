"""Comparisons find real differences with at most 5 % false positives."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from wsgiload.analysis.comparison import compare_runs, compare_servers, drift_factor
from wsgiload.analysis.over_cells import analyse
from wsgiload.analysis.overload import overload_points, saturation_goodputs
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.over_cells import Comparison, Overload, OverloadPoint
from wsgiload.report.over_runs import comparison_lines
from wsgiload.statistics.effect import DECISIVE_SHARE

from .filled import filled_summary, outcomes, rates
from .invented_cells import cell, experiment, invalid, runs_of, with_p50

IDENTICAL = {"sync": 20e6, "again": 20e6}


def as_aliases_of_sync(cells: Sequence[CellResult]) -> list[CellResult]:
    """The cells as trials of the server sync under several names."""
    return [msgspec.structs.replace(result, server="sync") for result in cells]


def only_entry(entries: Sequence[Comparison]) -> Comparison:
    [comparison] = entries
    return comparison


def test_aa_tests_have_at_most_5_percent_false_positives() -> None:
    """F18: 40 experiments of six runs with 5 % noise; the limit is 5 % plus two standard errors."""
    false_positives = sum(
        only_entry(compare_servers(experiment(seed, IDENTICAL))).conclusion == "different"
        for seed in range(40)
    )
    assert false_positives / 40 <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 40)


def test_a_thousand_aa_tests_have_at_most_5_percent_false_positives() -> None:
    false_positives = sum(
        only_entry(compare_servers(experiment(seed, IDENTICAL))).conclusion == "different"
        for seed in range(1000)
    )
    assert 0 < false_positives / 1000 <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 1000), (
        "no difference at all, or too many"
    )


def test_many_pairs_have_at_most_5_percent_false_positives() -> None:
    servers = dict.fromkeys(("a", "b", "c", "d"), 20e6)
    false_positives = sum(
        any(
            entry.conclusion == "different"
            for entry in compare_servers(experiment(seed, servers, runs=9))
        )
        for seed in range(300)
    )
    assert false_positives / 300 <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 300)


def test_the_interval_of_a_difference_contains_the_true_factor() -> None:
    entry = only_entry(compare_servers(experiment(1, {"gthread": 26.2e6, "sync": 20e6})))

    assert (entry.first, entry.second, entry.figure) == ("gthread", "sync", "p99")
    assert entry.conclusion == "different"
    low, high = entry.interval_95
    assert low < 1.31 < high and low < entry.factor < high
    assert entry.p_adjusted == pytest.approx(entry.p / DECISIVE_SHARE) and 0 < entry.p < 0.04
    assert (entry.rounds, entry.same_server) == (6, False)


def test_equivalence_within_the_margin_needs_evidence() -> None:
    quiet = only_entry(compare_servers(experiment(2, IDENTICAL, runs=10, run_effect=0.01)))
    assert quiet.conclusion == "same"
    noisy = only_entry(compare_servers(experiment(2, IDENTICAL, runs=6, run_effect=0.2)))
    assert noisy.conclusion == "undecided"


def test_a_significant_difference_within_the_margin_is_equivalent() -> None:
    entry = only_entry(
        compare_servers(experiment(3, {"a": 20e6, "b": 20.2e6}, runs=10, run_effect=0.001))
    )
    assert entry.p_adjusted < 0.05
    assert entry.conclusion == "same"


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_fewer_than_four_rounds_allow_no_inference(runs: int) -> None:
    entry = only_entry(compare_servers(experiment(1, {"a": 1e6, "b": 9e6}, runs=runs)))
    assert (entry.conclusion, entry.factor, entry.p) == ("no inference", None, None)
    assert entry.reason == f"only {runs} of 4 required runs"


def test_pairing_removes_the_effect_of_slow_rounds() -> None:
    slowdowns = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
    cells = runs_of("a", [1e6 * slowdown for slowdown in slowdowns]) + runs_of(
        "b", [1.2e6 * slowdown for slowdown in slowdowns]
    )

    entry = only_entry(compare_servers(cells))
    assert entry.factor == pytest.approx(1 / 1.2, rel=1e-6)
    assert entry.conclusion == "different"


def test_a_round_with_a_discarded_trial_is_omitted() -> None:
    cells = experiment(1, {"a": 26e6, "b": 20e6}, runs=8)
    cells[0], cells[3] = invalid(cells[0]), invalid(cells[3])
    assert [cells[index].id for index in (0, 3)] == ["a@1000#1", "b@1000#2"]

    assert only_entry(compare_servers(cells)).rounds == 6


def test_an_unbounded_p99_cannot_be_compared() -> None:
    entry = only_entry(compare_servers(runs_of("a", [1e6] * 5 + [None]) + runs_of("b", [1e6] * 6)))
    assert (entry.conclusion, entry.reason) == ("no inference", "no finite value in 1 of 6 runs")


@pytest.mark.parametrize("sustained", [1000.0, 2000.0])
def test_the_highest_sustained_load_has_most_of_the_error_probability(sustained: float) -> None:
    means = {"a": 20e6, "b": 40e6, "c": 80e6}
    higher = [
        msgspec.structs.replace(
            result,
            rate=2000.0,
            id=result.id.replace("@1000", "@2000"),
            rate_result=rates(sustained, offered_per_s=2000.0),
        )
        for result in experiment(1, means)
    ]
    entries = compare_servers([*experiment(1, means), *higher])
    assert [entry.rate for entry in entries] == [1000.0] * 3 + [2000.0] * 3

    surest = min(
        (entry for entry in entries if entry.rate == sustained), key=lambda one: one.p or 1
    )
    assert surest.p_adjusted == pytest.approx((surest.p or 0) * 3 / DECISIVE_SHARE)
    other = min((entry for entry in entries if entry.rate != sustained), key=lambda one: one.p or 1)
    assert (other.p_adjusted or 0) > 10 * (surest.p_adjusted or 1)


def test_equal_servers_at_three_loads_differ_in_at_most_5_percent_of_experiments() -> None:
    """In any figure, at any load."""
    false_positives = 0
    for seed in range(300):
        cells = []
        for rate in (1000.0, 2000.0, 3000.0):
            of_rate = with_p50(
                experiment(round(seed * 1e5 + rate), IDENTICAL), dict.fromkeys(IDENTICAL, 2e6)
            )
            cells += [
                msgspec.structs.replace(one, rate=rate, id=f"{one.server}@{rate:g}#{one.run}")
                for one in of_rate
            ]
        false_positives += any(
            one.conclusion == "different"
            for entry in compare_servers(cells)
            for one in (entry, *entry.others)
        )
    assert false_positives / 300 <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 300)


def test_a_difference_must_exceed_that_of_the_aa_test() -> None:
    values = [20e6 * factor for factor in (1.0, 1.01, 0.99, 1.02, 0.98, 1.0, 1.01, 0.99)]
    different_aliases = runs_of("sync", values) + runs_of(
        "again", [1.5 * value for value in values], server="sync"
    )

    entries = compare_servers(
        [*different_aliases, *runs_of("gthread", [1.3 * value for value in values])]
    )
    by_names = {(entry.first, entry.second): entry for entry in entries}

    assert by_names["sync", "again"].same_server
    assert by_names["sync", "gthread"].aa_factor == pytest.approx(1.5)
    assert by_names["sync", "gthread"].p_adjusted < 0.05
    assert by_names["sync", "gthread"].conclusion == "undecided"

    equal_aliases = runs_of("sync", values) + runs_of("again", values[::-1], server="sync")
    entries = compare_servers(
        [*equal_aliases, *runs_of("gthread", [1.3 * value for value in values])]
    )
    assert [entry.conclusion for entry in entries] == ["same", "different", "different"]


def test_an_aa_test_is_recognised_without_valid_trials() -> None:
    cells = as_aliases_of_sync(
        [invalid(result) if result.run < 4 else result for result in experiment(1, IDENTICAL)]
    )
    entry = only_entry(compare_servers(cells))
    assert (entry.same_server, entry.conclusion) == (True, "no inference")

    discarded = only_entry(
        compare_servers(
            as_aliases_of_sync([invalid(result) for result in experiment(1, IDENTICAL)])
        )
    )
    assert (discarded.same_server, discarded.rounds) == (True, 0)


def test_medians_can_differ_between_servers_tied_in_p99() -> None:
    cells = with_p50(experiment(2, {"a": 20e6, "b": 20e6}, run_effect=0.3), {"a": 2e6, "b": 3e6})
    entry = only_entry(compare_servers(cells))
    assert (entry.figure, entry.conclusion) == ("p99", "undecided")

    median, goodput = entry.others
    assert (median.figure, median.conclusion) == ("p50", "different")
    assert median.factor == pytest.approx(2 / 3, rel=0.05)
    assert median.interval_95[0] < median.factor < median.interval_95[1] < 1
    assert (goodput.figure, goodput.conclusion, goodput.margin) == ("goodput", "same", 0)


def test_medians_of_eight_equal_servers_have_at_most_5_percent_false_positives() -> None:
    servers = dict.fromkeys("abcdefgh", 20e6)
    false_positives = {"p50": 0, "p99": 0}
    for seed in range(100):
        cells = experiment(seed, servers, runs=11, run_effect=0.2)
        median_cells = {
            result.id: result for result in experiment(1000 + seed, servers, 11, run_effect=0.05)
        }
        cells_with_medians = [
            msgspec.structs.replace(
                result,
                offered_quantiles_ns=(result.offered_quantiles_ns or {})
                | {"0.5": (median_cells[result.id].offered_quantiles_ns or {})["0.99"]},
            )
            for result in cells
        ]

        entries = compare_servers(cells_with_medians)
        false_positives["p99"] += any(entry.conclusion == "different" for entry in entries)
        false_positives["p50"] += any(
            entry.others[0].conclusion == "different" for entry in entries
        )

    assert max(false_positives.values()) <= 5 + 2 * math.sqrt(100 * 0.05 * 0.95)


def test_the_margin_follows_from_two_one_sided_tests() -> None:
    entry = only_entry(compare_servers(experiment(2, IDENTICAL, runs=6, run_effect=0.2)))
    assert entry.margin is not None and entry.interval_95 is not None
    narrow, wide = abs(math.log(entry.factor or 1)), math.log(max(entry.interval_95))
    assert narrow < math.log1p(entry.margin) < max(wide, -math.log(min(entry.interval_95)))


def test_a_closed_loop_is_compared_by_its_goodput() -> None:
    closed = {"rate": None, "connections": 10}
    first = [cell("a", run, rate_result=rates(500.0 + run), **closed) for run in range(1, 7)]
    second = [cell("b", run, rate_result=rates(1000.0 + 2 * run), **closed) for run in range(1, 7)]

    entry = only_entry(compare_servers(first + second))
    assert (entry.figure, entry.connections, entry.conclusion) == ("goodput", 10, "different")
    assert entry.factor == pytest.approx(0.5)


# --- rates relative to capacity


def saturated(server: str, goodput: float, offered: float, **fields: Any) -> list[CellResult]:
    changes = {
        "rate": offered,
        "rate_result": rates(goodput),
        "outcomes": outcomes(round(offered * 20), round(goodput * 20)),
    } | fields
    return [cell(server, run, None, **changes) for run in range(1, 7)]


def test_the_relative_rate_needs_a_saturated_load_level() -> None:
    cells = experiment(1, {"a": 26e6, "b": 20e6})
    assert only_entry(compare_servers(cells)).relative_rate is None

    overloaded = [*saturated("a", 1250.0, 2000.0), *saturated("b", 1100.0, 2000.0)]
    assert saturation_goodputs(cells + overloaded) == {"a": 1250.0, "b": 1100.0}

    first = compare_servers(cells + overloaded)[0]
    assert first.relative_rate == pytest.approx(1000 / 1100)

    assert drift_factor(first.relative_rate) == pytest.approx(11)
    assert drift_factor(0.5) == 2
    assert drift_factor(1.2) == math.inf


def test_overload_points_show_stable_or_collapsing_goodput() -> None:
    cells = [
        *saturated("a", 1250.0, 2000.0),
        *saturated("a", 400.0, 4000.0),
        *experiment(1, {"a": 1e6, "b": 1e6}),
    ]
    points = (
        OverloadPoint(rate=2000.0, relative_rate=1.6, goodput_per_s=1250.0, goodput_ratio=1.0),
        OverloadPoint(rate=4000.0, relative_rate=3.2, goodput_per_s=400.0, goodput_ratio=0.32),
    )

    assert overload_points(cells) == (
        Overload(server="a", max_goodput_per_s=1250.0, points=points),
    )


def test_a_session_rate_is_not_relative_to_capacity() -> None:
    overloaded = [*saturated("a", 1250.0, 2000.0), *saturated("b", 1100.0, 2000.0)]
    cells = [*experiment(1, {"a": 26e6, "b": 20e6}), *overloaded]
    of_requests, of_sessions = (
        analyse(filled_summary({"runs": 6, "sessions": sessions}, cells)) for sessions in (None, 2)
    )

    assert [len(summary.overload or ()) for summary in (of_requests, of_sessions)] == [2, 0]
    for summary, is_known in ((of_requests, True), (of_sessions, False)):
        assert {entry.relative_rate is not None for entry in summary.comparisons or ()} == {
            is_known
        }
    assert {entry.relative_rate for entry in compare_runs(cells, cells, of_sessions=True)} == {None}

    text = " ".join(text for text, _ in comparison_lines(of_sessions))
    assert "is unknown: rates are in sessions per second." in text


def test_capacity_is_unknown_without_responses_or_without_overload() -> None:
    assert overload_points(saturated("a", 0.0, 2000.0)) == ()
    assert overload_points(saturated("a", 1950.0, 2000.0)) == ()

    errors = outcomes(40_000, 25_000, http_status=14_000, bad_body=500)
    assert overload_points(saturated("a", 1250.0, 2000.0, outcomes=errors)) == ()

    stalled_once = [*saturated("a", 48.0, 100.0)[:5], *saturated("a", 99.0, 100.0)[5:]]
    assert overload_points(stalled_once) == ()

    assert overload_points(saturated("a", 1250.0, 2000.0, rate=None, connections=5)) == ()


# --- two stored runs


def test_stored_runs_are_compared_by_server_without_pairing() -> None:
    rng = random.Random(4)
    old = [
        value
        for seed in (1,)
        for value in experiment(seed, {"a": 20e6, "b": 20e6}, run_effect=0.02)
    ]
    new = experiment(9, {"b": 30e6, "a": 20e6}, run_effect=0.02)
    rng.shuffle(new)

    entries = compare_runs(old, new)
    by_name = {entry.first: entry for entry in entries}
    assert by_name.keys() == {"a", "b"}
    assert by_name["b"].conclusion == "different"
    assert by_name["b"].factor == pytest.approx(1.5, rel=0.05), "second run / first run"
    assert by_name["a"].conclusion != "different"


def test_equal_stored_runs_of_one_session_have_at_most_5_percent_false_positives() -> None:
    false_positives = 0
    for seed in range(400):
        old, new = experiment(seed, {"a": 20e6}), experiment(10_000 + seed, {"a": 20e6})
        false_positives += only_entry(compare_runs(old, new)).conclusion == "different"
    assert false_positives / 400 <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 400)


def test_servers_of_only_one_run_are_not_compared() -> None:
    old, new = experiment(1, {"a": 20e6, "b": 20e6}), experiment(2, {"b": 20e6, "c": 20e6})
    assert [entry.first for entry in compare_runs(old, new)] == ["b"]
