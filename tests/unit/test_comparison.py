"""A difference is claimed where the data carry it, and hardly ever where there is none."""

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
from wsgiload.statistics.effect import holm

from .filled import filled_summary, outcomes, rates
from .invented_cells import cell, experiment, invalid, runs_of, with_p50

SAME = {"sync": 20e6, "again": 20e6}


def as_two_names(cells: Sequence[CellResult]) -> list[CellResult]:
    """Both are the server sync, one of them under another name."""
    return [msgspec.structs.replace(one, server="sync") for one in cells]


def only(entries: Sequence[Comparison]) -> Comparison:
    [entry] = entries
    return entry


def test_two_names_for_one_server_differ_in_no_more_than_one_experiment_of_twenty() -> None:
    """F18: 40 experiments of six runs, each run off by 5 %; at most 5 % and two standard errors
    claim a difference."""
    claimed = sum(
        only(compare_servers(experiment(seed, SAME))).conclusion == "different"
        for seed in range(40)
    )
    assert claimed / 40 <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 40)


def test_that_rate_holds_over_many_more_experiments_and_with_an_effect_of_each_round() -> None:
    claimed = sum(
        only(compare_servers(experiment(seed, SAME))).conclusion == "different"
        for seed in range(1000)
    )
    assert 0 < claimed / 1000 <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 1000), (
        "nothing is ever claimed, or too much"
    )


def test_of_many_pairs_none_is_claimed_falsely_more_often_than_of_one() -> None:
    servers = dict.fromkeys(("a", "b", "c", "d"), 20e6)
    wrong = sum(
        any(
            entry.conclusion == "different"
            for entry in compare_servers(experiment(seed, servers, runs=9))
        )
        for seed in range(300)
    )
    assert wrong / 300 <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 300)


def test_a_difference_of_a_third_is_found_and_the_interval_holds_it() -> None:
    entry = only(compare_servers(experiment(1, {"gthread": 26.2e6, "sync": 20e6})))
    assert (entry.first, entry.second, entry.figure) == ("gthread", "sync", "p99")
    assert entry.conclusion == "different"
    low, high = entry.interval_95
    assert low < 1.31 < high and low < entry.factor < high
    assert entry.p == entry.p_adjusted and 0 < entry.p < 0.05
    assert (entry.rounds, entry.same_server) == (6, False)


def test_the_same_within_the_margin_is_a_finding_and_not_the_lack_of_one() -> None:
    quiet = only(compare_servers(experiment(2, SAME, runs=10, run_effect=0.01)))
    assert quiet.conclusion == "same"
    noisy = only(compare_servers(experiment(2, SAME, runs=6, run_effect=0.2)))
    assert noisy.conclusion == "undecided"


def test_a_difference_smaller_than_the_margin_is_the_same() -> None:
    entry = only(
        compare_servers(experiment(3, {"a": 20e6, "b": 20.2e6}, runs=10, run_effect=0.001))
    )
    assert entry.p_adjusted < 0.05
    assert entry.conclusion == "same"


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_fewer_than_four_rounds_are_no_comparison(runs: int) -> None:
    entry = only(compare_servers(experiment(1, {"a": 1e6, "b": 9e6}, runs=runs)))
    assert (entry.conclusion, entry.factor, entry.p) == ("no inference", None, None)
    assert entry.reason == f"only {runs} of 4 required runs"


def test_rounds_are_paired_so_that_a_round_that_was_slow_for_all_makes_no_difference() -> None:
    rounds = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
    cells = runs_of("a", [1e6 * slow for slow in rounds]) + runs_of(
        "b", [1.2e6 * slow for slow in rounds]
    )
    entry = only(compare_servers(cells))
    assert entry.factor == pytest.approx(1 / 1.2, rel=1e-6)
    assert entry.conclusion == "different"


def test_a_round_in_which_one_trial_was_discarded_counts_for_neither() -> None:
    cells = experiment(1, {"a": 26e6, "b": 20e6}, runs=8)
    cells[0], cells[3] = invalid(cells[0]), invalid(cells[3])
    assert [cells[place].id for place in (0, 3)] == ["a@1000#1", "b@1000#2"]
    assert only(compare_servers(cells)).rounds == 6


def test_what_was_not_met_cannot_be_compared_and_says_so() -> None:
    entry = only(compare_servers(runs_of("a", [1e6] * 5 + [None]) + runs_of("b", [1e6] * 6)))
    assert (entry.conclusion, entry.reason) == ("no inference", "no finite value in 1 of 6 runs")


def test_the_adjustment_is_over_the_pairs_of_one_load() -> None:
    means = {"a": 20e6, "b": 40e6, "c": 80e6}
    cells = experiment(1, means, runs=6) + [
        msgspec.structs.replace(one, rate=2000.0, id=one.id.replace("@1000", "@2000"))
        for one in experiment(2, means, runs=6)
    ]
    entries = compare_servers(cells)
    assert [entry.rate for entry in entries] == [1000.0] * 3 + [2000.0] * 3
    for of_load in (entries[:3], entries[3:]):
        adjusted = holm([entry.p for entry in of_load if entry.p is not None])
        assert [entry.p_adjusted for entry in of_load] == adjusted
    assert {entry.conclusion for entry in entries} == {"different"}


def test_a_difference_must_exceed_what_one_server_showed_against_itself() -> None:
    values = [20e6 * factor for factor in (1.0, 1.01, 0.99, 1.02, 0.98, 1.0, 1.01, 0.99)]
    apart = runs_of("sync", values) + runs_of(
        "again", [1.5 * value for value in values], server="sync"
    )
    entries = compare_servers([*apart, *runs_of("gthread", [1.3 * value for value in values])])
    by_names = {(entry.first, entry.second): entry for entry in entries}
    assert by_names["sync", "again"].same_server
    assert by_names["sync", "gthread"].aa_factor == pytest.approx(1.5)
    assert by_names["sync", "gthread"].p_adjusted < 0.05
    assert by_names["sync", "gthread"].conclusion == "undecided"
    quiet = runs_of("sync", values) + runs_of("again", values[::-1], server="sync")
    entries = compare_servers([*quiet, *runs_of("gthread", [1.3 * value for value in values])])
    assert [entry.conclusion for entry in entries] == ["same", "different", "different"]


def test_one_server_under_two_names_is_known_also_where_no_trial_of_it_stands() -> None:
    cells = as_two_names([invalid(one) if one.run < 4 else one for one in experiment(1, SAME)])
    entry = only(compare_servers(cells))
    assert (entry.same_server, entry.conclusion) == (True, "no inference")
    spoiled = only(compare_servers(as_two_names([invalid(one) for one in experiment(1, SAME)])))
    assert (spoiled.same_server, spoiled.rounds) == (True, 0)


def test_the_median_separates_what_is_tied_in_p99() -> None:
    cells = with_p50(experiment(2, {"a": 20e6, "b": 20e6}, run_effect=0.3), {"a": 2e6, "b": 3e6})
    entry = only(compare_servers(cells))
    assert (entry.figure, entry.conclusion) == ("p99", "undecided")
    median, goodput = entry.others
    assert (median.figure, median.conclusion) == ("p50", "different")
    assert median.factor == pytest.approx(2 / 3, rel=0.05)
    assert median.interval_95[0] < median.factor < median.interval_95[1] < 1
    assert (goodput.figure, goodput.conclusion, goodput.margin) == ("goodput", "same", 0)


def test_every_figure_is_adjusted_for_its_own_pairs() -> None:
    means = {"a": 20e6, "b": 40e6, "c": 80e6}
    entries = compare_servers(with_p50(experiment(1, means), dict.fromkeys(means, 2e6)))
    assert {entry.conclusion for entry in entries} == {"different"}
    medians = [entry.others[0] for entry in entries]
    again = compare_servers(with_p50(experiment(1, means), dict.fromkeys(means, 2e6)), "p50")
    assert [one.p_adjusted for one in medians] == [one.p_adjusted for one in again]


def test_of_eight_equal_servers_medians_differ_falsely_no_more_often_than_p99() -> None:
    servers = dict.fromkeys("abcdefgh", 20e6)
    wrong = {"p50": 0, "p99": 0}
    for seed in range(100):
        cells = experiment(seed, servers, runs=11, run_effect=0.2)
        medians = {one.id: one for one in experiment(1000 + seed, servers, 11, run_effect=0.05)}
        both = [
            msgspec.structs.replace(
                one,
                offered_quantiles_ns=(one.offered_quantiles_ns or {})
                | {"0.5": (medians[one.id].offered_quantiles_ns or {})["0.99"]},
            )
            for one in cells
        ]
        entries = compare_servers(both)
        wrong["p99"] += any(entry.conclusion == "different" for entry in entries)
        wrong["p50"] += any(entry.others[0].conclusion == "different" for entry in entries)
    assert max(wrong.values()) <= 5 + 2 * math.sqrt(100 * 0.05 * 0.95)


def test_the_margin_is_what_two_one_sided_tests_support() -> None:
    entry = only(compare_servers(experiment(2, SAME, runs=6, run_effect=0.2)))
    assert entry.margin is not None and entry.interval_95 is not None
    narrow, wide = abs(math.log(entry.factor or 1)), math.log(max(entry.interval_95))
    assert narrow < math.log1p(entry.margin) < max(wide, -math.log(min(entry.interval_95)))


def test_a_closed_loop_is_compared_by_its_goodput() -> None:
    closed = {"rate": None, "connections": 10}
    one = [cell("a", run, rate_result=rates(500.0 + run), **closed) for run in range(1, 7)]
    two = [cell("b", run, rate_result=rates(1000.0 + 2 * run), **closed) for run in range(1, 7)]
    entry = only(compare_servers(one + two))
    assert (entry.figure, entry.connections, entry.conclusion) == ("goodput", 10, "different")
    assert entry.factor == pytest.approx(0.5)


# --- how near to its capacity


def saturated(server: str, goodput: float, offered: float, **more: Any) -> list[CellResult]:
    changes = {
        "rate": offered,
        "rate_result": rates(goodput),
        "outcomes": outcomes(round(offered * 20), round(goodput * 20)),
    } | more
    return [cell(server, run, None, **changes) for run in range(1, 7)]


def test_the_share_of_its_capacity_is_known_where_a_higher_load_was_too_much() -> None:
    cells = experiment(1, {"a": 26e6, "b": 20e6})
    assert only(compare_servers(cells)).relative_rate is None
    above = [*saturated("a", 1250.0, 2000.0), *saturated("b", 1100.0, 2000.0)]
    assert saturation_goodputs(cells + above) == {"a": 1250.0, "b": 1100.0}
    first = compare_servers(cells + above)[0]
    assert first.relative_rate == pytest.approx(1000 / 1100)
    assert drift_factor(first.relative_rate) == pytest.approx(11)
    assert drift_factor(0.5) == 2
    assert drift_factor(1.2) == math.inf


def test_beyond_its_capacity_a_server_holds_or_collapses() -> None:
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


def test_a_rate_of_sessions_is_no_share_of_a_capacity() -> None:
    above = [*saturated("a", 1250.0, 2000.0), *saturated("b", 1100.0, 2000.0)]
    cells = [*experiment(1, {"a": 26e6, "b": 20e6}), *above]
    of_requests, of_sessions = (
        analyse(filled_summary({"runs": 6, "sessions": sessions}, cells)) for sessions in (None, 2)
    )
    assert [len(one.overload or ()) for one in (of_requests, of_sessions)] == [2, 0]
    for one, is_known in ((of_requests, True), (of_sessions, False)):
        assert {entry.relative_rate is not None for entry in one.comparisons or ()} == {is_known}
    assert {entry.relative_rate for entry in compare_runs(cells, cells, of_sessions=True)} == {None}
    said = " ".join(text for text, _ in comparison_lines(of_sessions))
    assert "is unknown: rates are in sessions per second." in said


def test_a_server_that_answers_nothing_or_everything_has_no_known_capacity() -> None:
    assert overload_points(saturated("a", 0.0, 2000.0)) == ()
    assert overload_points(saturated("a", 1950.0, 2000.0)) == ()
    errors = outcomes(40_000, 25_000, http_status=14_000, bad_body=500)
    assert overload_points(saturated("a", 1250.0, 2000.0, outcomes=errors)) == ()
    stalled_once = [*saturated("a", 48.0, 100.0)[:5], *saturated("a", 99.0, 100.0)[5:]]
    assert overload_points(stalled_once) == ()
    assert overload_points(saturated("a", 1250.0, 2000.0, rate=None, connections=5)) == ()


# --- two stored runs


def test_two_runs_are_compared_server_by_server_without_pairing() -> None:
    draw = random.Random(4)
    old = [
        value
        for seed in (1,)
        for value in experiment(seed, {"a": 20e6, "b": 20e6}, run_effect=0.02)
    ]
    new = experiment(9, {"b": 30e6, "a": 20e6}, run_effect=0.02)
    draw.shuffle(new)
    entries = compare_runs(old, new)
    by_name = {entry.first: entry for entry in entries}
    assert by_name.keys() == {"a", "b"}
    assert by_name["b"].conclusion == "different"
    assert by_name["b"].factor == pytest.approx(1.5, rel=0.05), "the second over the first"
    assert by_name["a"].conclusion != "different"


def test_two_runs_of_the_same_hardly_ever_differ() -> None:
    wrong = 0
    for seed in range(400):
        old, new = experiment(seed, {"a": 20e6}), experiment(10_000 + seed, {"a": 20e6})
        wrong += only(compare_runs(old, new)).conclusion == "different"
    assert wrong / 400 <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 400)


def test_what_only_one_run_measured_is_not_compared() -> None:
    old, new = experiment(1, {"a": 20e6, "b": 20e6}), experiment(2, {"b": 20e6, "c": 20e6})
    assert [entry.first for entry in compare_runs(old, new)] == ["b"]
