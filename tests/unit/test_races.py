"""Races in summary.json, and the answers that follow from them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from wsgiload.analysis.comparison import compare_servers
from wsgiload.analysis.over_cells import analyse
from wsgiload.cli import run
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.over_cells import Comparison, Race
from wsgiload.documents.summary import Summary
from wsgiload.report.answer import answer_of
from wsgiload.report.first_screen import markdown, table_of

from .filled import filled_summary, outcomes, rates
from .invented_cells import cell, experiment, with_p50

MS = 1e6
BUDGET_S = 600.0


def _summary(cells: Sequence[CellResult], max_rounds: int = 11) -> Summary:
    facts = {
        "runs": max_rounds,
        "budget_s": BUDGET_S,
        "duration_s": 10.0,
        "servers": tuple(dict.fromkeys(one.id.rpartition("@")[0] for one in cells)),
        "rates": (1000.0,),
        "cpus": 1.0,
    }
    return analyse(filled_summary(facts, cells))


def _only(summary: Summary) -> Race:
    assert summary.races is not None
    [race] = summary.races
    return race


def _raced(
    rounds: Mapping[str, int], p99s_ms: Mapping[str, float], **more: Any
) -> list[CellResult]:
    """The cells of a race in which each server was measured in its first rounds only."""
    cells = experiment(1, {name: p99 * MS for name, p99 in p99s_ms.items()}, 8, **more)
    return [one for one in cells if one.run <= rounds[one.id.rpartition("@")[0]]]


WON = _raced({"slow": 2, "near": 8, "fast": 8}, {"slow": 60, "near": 14, "fast": 10})
TIED = _raced(dict.fromkeys(("near", "fast"), 6), {"near": 10, "fast": 10}, run_effect=0.02)
GOOD = _raced({"slow": 2, "near": 3, "fast": 3}, {"slow": 60, "near": 11.5, "fast": 10})
OPEN = _raced({"slow": 2, "near": 2, "fast": 2}, {"slow": 60, "near": 11.5, "fast": 10})


def test_the_answer_names_the_winner_and_how_far_the_others_are_behind() -> None:
    summary = _summary(WON)
    race = _only(summary)
    assert (race.outcome, race.contenders) == ("winner", ("fast",))
    assert {drop.server: drop.behind for drop in race.dropped_out} == {
        "slow": "fast",
        "near": "fast",
    }

    answer = answer_of(summary)
    assert (answer.status, answer.needs) == ("decided", None)
    assert re.match(
        r"fast has the lowest p99 at 1,000/s: .*\. Behind: near \(1\.\d\d× \[1\.\d\d, .*\]\) and "
        r"slow \([56]\.\d\d×.*\)\.",
        answer.sentence,
    )
    assert answer.sentence in markdown(msgspec.structs.replace(summary, answer=answer))


def test_the_table_lists_contenders_before_dropouts() -> None:
    ranking = answer_of(_summary(WON)).ranking
    _, rows = table_of(ranking[0], ranking)
    assert [row[:2] for row in rows] == [["1", "fast"], ["2", "near"], ["3", "slow"]]
    ranking = answer_of(_summary(OPEN)).ranking
    _, rows = table_of(ranking[0], ranking)
    assert [row[1] for row in rows][2] == "slow"
    assert {row[0] for row in rows[:2]} == {"1?"}


def test_ties_are_reported_with_the_margin_and_their_ratio() -> None:
    race = _only(_summary(TIED))
    assert race.outcome == "ties"
    assert race.margin is not None and race.margin < 0.1

    answer = answer_of(_summary(TIED))
    assert answer.status == "tie"

    leader, other = race.contenders
    assert re.match(
        rf"{leader} and {other} \((0\.9|1\.0)\d× \[.*\]\) are tied within 10 % for the lowest p99 at "
        r"1,000/s: ",
        answer.sentence,
    )


def test_servers_tied_in_p99_may_differ_in_p50() -> None:
    summary = _summary(with_p50(TIED, {"near": 2 * MS, "fast": 4 * MS}))
    assert _only(summary).outcome == "ties"

    [comparison] = summary.comparisons or ()
    assert comparison.conclusion != "different"
    assert [(one.figure, one.conclusion) for one in comparison.others] == [
        ("p50", "different"),
        ("goodput", "same"),
    ]

    leader = _only(summary).contenders[0]
    better = "near's p50 is 0." in answer_of(summary).sentence
    assert better == (leader == "fast")


def test_equal_medians_rarely_differ_whenever_a_race_stops() -> None:
    """Eight equal servers; p99 decides which of them are measured."""
    names, wrong = tuple("abcdefgh"), 0
    for seed in range(40):
        cells = experiment(seed, dict.fromkeys(names, 10 * MS), 11, run_effect=0.14)
        medians = {one.id: one for one in experiment(900 + seed, dict.fromkeys(names, MS), 11)}
        both = [
            msgspec.structs.replace(
                one,
                offered_quantiles_ns=(one.offered_quantiles_ns or {})
                | {"0.5": (medians[one.id].offered_quantiles_ns or {})["0.99"]},
            )
            for one in cells
        ]
        for rounds in (4, 7, 11):
            comparisons = _summary([one for one in both if one.run <= rounds]).comparisons or ()
            conclusions = [other.conclusion for one in comparisons for other in one.others]
            wrong += "different" in conclusions

    assert wrong <= 3 * 40 * 0.05


def test_an_undecided_race_names_who_is_open_and_the_budget_that_would_decide_it() -> None:
    race = _only(_summary(OPEN))
    assert (race.outcome, set(race.contenders)) == ("undecided", {"fast", "near"})

    answer = answer_of(_summary(OPEN))
    assert answer.status == "undecided"
    assert "but the race is not decided." in answer.sentence
    assert "may be as good or better." in answer.sentence
    assert answer.needs is not None

    minutes = int(re.search(r"--budget (\d+)m", answer.needs)[1])  # type: ignore[index]
    assert minutes * 60 > BUDGET_S
    assert answer.command_line is None  # the invented cells have no settings


def test_a_leader_that_is_within_the_margin_of_the_best_is_an_answer() -> None:
    assert _only(_summary(GOOD)).outcome == "leader"
    answer = answer_of(_summary(GOOD))
    assert (answer.status, answer.needs) == ("decided", None)
    assert re.match(
        r"fast has the lowest p99 at 1,000/s or is within 10 % of it: .*\. near \(1\.\d\d× .*\) may "
        r"be as good\. Behind: slow",
        answer.sentence,
    )


def test_one_failed_launch_of_many_does_not_exclude_a_server() -> None:
    few = outcomes(20_000, 17_000, reset=3_000)
    failed = cell("fast", 9, None, outcomes=few)
    answer = answer_of(_summary([*WON, failed]))
    assert [entry.status for entry in answer.ranking[0].entries] == ["ranked"] * 3
    assert answer.sentence.startswith("fast has the lowest p99 at 1,000/s: ")
    again = cell("fast", 10, None, outcomes=few)
    answer = answer_of(_summary([*WON, failed, again]))
    assert [entry.status for entry in answer.ranking[0].entries][-1] == "overloaded"


def test_servers_that_all_failed_have_no_winner() -> None:
    cells = [cell(name, number, None) for number in (1, 2) for name in ("a", "b")]
    assert _only(_summary(cells)).outcome == "failed"
    answer = answer_of(_summary(cells))
    assert (answer.status, answer.needs) == (
        "undecided",
        "use lower --rates; the reasons are listed below",
    )
    assert answer.sentence.startswith("Every server failed at this load level")


def _of_pair(comparisons: Sequence[Comparison] | None, *names: str) -> Comparison:
    return next(one for one in comparisons or () if {one.first, one.second} == set(names))


def test_comparisons_of_a_race_are_corrected_for_interim_analyses() -> None:
    raced = _of_pair(_summary(TIED).comparisons, "near", "fast")
    fixed = _of_pair(compare_servers(TIED), "near", "fast")
    assert raced.factor == pytest.approx(fixed.factor)
    assert raced.p is not None and raced.p_adjusted is not None
    assert raced.p < raced.p_adjusted


def test_a_race_of_closed_loops_is_decided_by_goodput() -> None:
    cells = [
        cell(
            name, number, rate=None, connections=10, rate_result=rates(per_s * (1 + 0.01 * number))
        )
        for number in range(1, 9)
        for name, per_s in (("less", 500.0), ("more", 1000.0 + number))
    ]
    summary = _summary(cells)

    assert (_only(summary).outcome, _only(summary).contenders[0]) == ("winner", "more")

    comparison = _of_pair(summary.comparisons, "less", "more")
    assert comparison.figure == "goodput"
    assert comparison.factor == pytest.approx(0.5, rel=0.02)


def test_without_a_budget_there_is_no_race() -> None:
    facts = {"runs": 8, "servers": ("near", "fast"), "rates": (1000.0,)}
    assert analyse(filled_summary(facts, TIED)).races is None


@pytest.mark.parametrize("words", [["--runs", "3"], ["--compare"]])
def test_a_budget_excludes_options_that_set_the_runs(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        run(["sweep", "--rates", "100", "--budget", "5m", *words, "--dry-run", "--json", "-"]) == 2
    )
    assert f"--budget and {words[0]} are mutually exclusive" in capsys.readouterr().err


def test_a_race_has_no_reruns(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sweep", "--rates", "100", "--reruns", "2", "--dry-run"]) == 2
    assert "--reruns has no effect in a race" in capsys.readouterr().err


def _dry_run(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert run(["sweep", "--rates", "200", *words, "--dry-run", "--json", "-"]) == 0
    plan: dict[str, Any] = json.loads(capsys.readouterr().out)
    return plan


def test_an_objective_is_raced_for_within_the_usual_budget_unless_the_design_is_fixed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    grid = ("--servers", "gunicorn-gthread", "--grid", "workers=1,2,4", "threads=1,2,4,8")
    slo = ("--slo", "p99<50ms")
    usual = _dry_run(capsys, *grid, *slo)
    assert (usual["budget_ns"], usual["is_sliced"]) == (300_000_000_000, True)
    assert usual["conclusions"] == [
        "Measures 12 configurations in blocks until the leanest that meets the objective is known, "
        "for at most 5 min."
    ]
    one = _dry_run(capsys, "--servers", "waitress", *slo)
    assert one["budget_ns"] == usual["budget_ns"]
    short = _dry_run(capsys, *grid, *slo, "--budget", "2m")
    assert short["conclusions"] == [
        "This budget allows 1 block of 12 configurations, but at least 5 blocks are needed. Use "
        "--budget 4m."
    ]
    [line] = _dry_run(capsys, *grid, *slo, "--budget", "90s")["conclusions"]
    assert line.startswith("This budget allows no complete block of 12 configurations")
    fixed = _dry_run(capsys, *grid, *slo, "--runs", "6")
    assert (fixed["budget_ns"], fixed["runs"]) == (None, 6)


@pytest.mark.parametrize(
    ("slo", "takes", "enough"), [((), 32, "6m"), (("--slo", "p99<50ms"), 14, "3m")]
)
def test_a_budget_that_allows_no_launch_is_refused(
    slo: tuple[str, ...], takes: int, enough: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With an objective, a launch measures one level, at first the one in the middle."""
    words = ["sweep", "--rates", "70,100,1000", "--servers", "waitress,wsgiref", *slo, "--dry-run"]
    assert run([*words, "--budget", "13s"]) == 2
    said = capsys.readouterr().err
    assert f"the budget is too short: a launch takes about {takes} s" in said
    assert f"--budget {enough}" in said
    assert run([*words, "--budget", enough]) == 0


def test_a_race_is_between_servers_of_one_app(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--rates", "9", "--grid", "app=hello,cpu", "--budget", "5m", "--dry-run"]
    assert run(["sweep", *words]) == 2
    assert "--budget decides between servers of one app" in capsys.readouterr().err
