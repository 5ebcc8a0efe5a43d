"""Races as summary.json has them, and the answer that follows."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from wsgiload.analysis.comparison import compare_servers
from wsgiload.analysis.over_cells import analyse
from wsgiload.cli import _initial_rates, run
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.experiment_facts import QualifyingFacts
from wsgiload.documents.over_cells import Comparison, Race
from wsgiload.documents.summary import Summary
from wsgiload.errors import UsageError
from wsgiload.experiment.build import SweepSpec, experiment_of
from wsgiload.experiment.plan import Experiment
from wsgiload.experiment.public_options import ServerOptions, SweepOptions
from wsgiload.loads.options import Level
from wsgiload.report.answer import answer_of
from wsgiload.report.cells import conditions
from wsgiload.report.first_screen import markdown, table_of

from .filled import filled_summary, rates
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
    """Each server in its first rounds only."""
    whole = experiment(1, {name: p99 * MS for name, p99 in p99s_ms.items()}, 8, **more)
    return [one for one in whole if one.run <= rounds[one.id.rpartition("@")[0]]]


WON = _raced({"slow": 2, "near": 8, "fast": 8}, {"slow": 60, "near": 14, "fast": 10})
TIED = _raced(dict.fromkeys(("near", "fast"), 6), {"near": 10, "fast": 10}, run_effect=0.02)
OPEN = _raced({"slow": 2, "near": 3, "fast": 3}, {"slow": 60, "near": 11.5, "fast": 10})


def test_a_winner_is_the_answer_and_who_dropped_out_is_said() -> None:
    summary = _summary(WON)
    race = _only(summary)
    assert (race.outcome, race.contenders) == ("winner", ("fast", "near"))
    assert [(drop.server, drop.rounds, drop.behind) for drop in race.dropped_out] == [
        ("slow", 2, "fast")
    ]

    answer = answer_of(summary)
    assert (answer.status, answer.needs) == ("decided", None)
    assert re.match(
        r"fast has the lowest p99 at 1,000/s: .*; near's p99 is 1\.\d\d× \[.*\] this value \(8 "
        r"runs each\)\. Dropped out: slow \(behind fast by a factor of [56]\.\d\d after 2 rounds\)\.",
        answer.sentence,
    )
    assert answer.sentence in markdown(msgspec.structs.replace(summary, answer=answer))


def test_the_table_has_the_contenders_first_and_who_dropped_out_last() -> None:
    ranking = answer_of(_summary(WON)).ranking
    _, rows = table_of(ranking[0], ranking)
    assert [row[:2] for row in rows] == [["1", "fast"], ["2", "near"], ["3", "slow"]]
    ranking = answer_of(_summary(OPEN)).ranking
    _, rows = table_of(ranking[0], ranking)
    assert [row[:2] for row in rows] == [["1=", "fast"], ["1=", "near"], ["3", "slow"]]


def test_ties_are_named_with_the_margin_that_the_data_support() -> None:
    race = _only(_summary(TIED))
    assert race.outcome == "ties"
    assert race.margin is not None
    answer = answer_of(_summary(TIED))
    assert answer.status == "tie"
    leader, other = race.contenders
    assert answer.sentence.startswith(
        f"{leader} and {other} are tied within {100 * race.margin:.0f} % for the lowest p99 at "
        f"1,000/s: {leader} has "
    )


def test_what_is_tied_in_p99_may_differ_in_its_median() -> None:
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


def test_equal_medians_hardly_ever_differ_at_whichever_round_a_race_stops() -> None:
    """Eight equal servers, of which p99 decides who is measured."""
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
            seen = _summary([one for one in both if one.run <= rounds]).comparisons or ()
            found = [other.conclusion for one in seen for other in one.others]
            wrong += "different" in found
    assert wrong <= 3 * 40 * 0.05


def _qualified(rounds: Mapping[str, int], p99s_ms: Mapping[str, float]) -> Summary:
    """Round 1 was of short trials, which choose three."""
    cells = _raced(rounds, p99s_ms)
    facts = {
        "runs": 8,
        "budget_s": BUDGET_S,
        "duration_s": 10.0,
        "qualifying": QualifyingFacts(rounds=1, max_servers=3, duration_s=3.0),
        "servers": tuple(p99s_ms),
        "rates": (1000.0,),
    }
    return analyse(filled_summary(facts, cells))


def test_who_did_not_qualify_is_counted_and_no_figure_rests_on_short_trials() -> None:
    p99s_ms = {"far": 90.0, "slow": 60.0, "mid": 18.0, "near": 14.0, "fast": 10.0}
    summary = _qualified({"far": 1, "slow": 1, "mid": 4, "near": 8, "fast": 8}, p99s_ms)
    race = _only(summary)
    assert (race.outcome, race.contenders) == ("winner", ("fast", "near"))
    assert {drop.server: drop.in_qualifying for drop in race.dropped_out} == {
        "far": True,
        "slow": True,
        "mid": False,
    }
    assert {one.server: len(one.runs) for one in summary.aggregates or ()} == {
        "mid": 3,
        "near": 7,
        "fast": 7,
    }
    assert len(summary.comparisons or ()) == 3
    assert conditions(summary.experiment).endswith(
        " · race of at most 7 rounds after short trials of 3 s"
    )

    answer = answer_of(summary)
    assert "Dropped out: mid (behind fast by a factor of 1." in answer.sentence
    assert " and 2 configurations after short trials." in answer.sentence
    assert answer.question.startswith("Which of 5 servers has the lowest p99")
    assert [entry.label for entry in answer.ranking[0].entries] == ["fast", "near", "mid"]


def test_a_budget_that_ends_with_the_short_trials_shows_what_they_saw() -> None:
    summary = _qualified({"mid": 1, "near": 1, "fast": 1}, {"mid": 18.0, "near": 14.0, "fast": 10})
    assert _only(summary).outcome == "undecided"
    answer = answer_of(summary)
    assert answer.status == "undecided"
    assert [entry.label for entry in answer.ranking[0].entries] == ["fast", "near", "mid"]
    assert answer.needs is not None
    assert "use --budget" in answer.needs


def test_what_is_open_names_the_rounds_and_the_budget_that_would_decide_it() -> None:
    race = _only(_summary(OPEN))
    assert (race.outcome, set(race.contenders)) == ("undecided", {"fast", "near"})
    answer = answer_of(_summary(OPEN))
    assert answer.status == "undecided"
    assert "but near is not significantly worse." in answer.sentence
    assert answer.needs is not None
    minutes = int(re.fullmatch(r"run .* \(--budget (\d+)m\)", answer.needs)[1])  # type: ignore[index]
    assert minutes * 60 > BUDGET_S
    assert answer.command_line is None  # the invented cells have no settings


def test_servers_that_all_failed_have_no_winner() -> None:
    cells = [cell(name, number, None) for number in (1, 2) for name in ("a", "b")]
    assert _only(_summary(cells)).outcome == "failed"
    answer = answer_of(_summary(cells))
    assert (answer.status, answer.needs) == (
        "undecided",
        "use lower --rates; the reasons are listed below",
    )
    assert answer.sentence.startswith("Every server failed at this load level")


def _of_pair(found: Sequence[Comparison] | None, *names: str) -> Comparison:
    return next(one for one in found or () if {one.first, one.second} == set(names))


def test_comparisons_of_a_race_allow_for_looking_after_every_round() -> None:
    raced = _of_pair(_summary(TIED).comparisons, "near", "fast")
    fixed = _of_pair(compare_servers(TIED), "near", "fast")
    assert raced.factor == pytest.approx(fixed.factor)
    assert raced.p is not None and fixed.p is not None
    assert raced.p > fixed.p
    assert raced.interval_95 is not None and fixed.interval_95 is not None
    assert raced.interval_95[0] < fixed.interval_95[0] < fixed.interval_95[1] < raced.interval_95[1]


def test_only_the_rounds_of_the_final_compare_the_finalists() -> None:
    found = _summary(WON).comparisons
    final = _of_pair(found, "fast", "near")
    assert (final.conclusion, final.rounds) == ("different", 6)
    dropped = _of_pair(found, "fast", "slow")
    assert (dropped.conclusion, dropped.reason) == (
        "no inference",
        "too few runs (2)",
    )


def test_a_closed_loop_is_raced_by_goodput() -> None:
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


@pytest.mark.parametrize("words", [["--runs", "3"], ["--compare"], ["--intervene", "cpu"]])
def test_a_budget_decides_the_number_of_runs(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["sweep", "--rates", "100", "--budget", "5m", *words, "--dry-run"]) == 2
    assert f"--budget and {words[0]} are mutually exclusive" in capsys.readouterr().err


def _dry_run(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert run(["sweep", "--rates", "200", *words, "--dry-run"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_budget_says_how_many_rounds_it_pays_for(capsys: pytest.CaptureFixture[str]) -> None:
    two = "--servers", "gunicorn-sync,waitress"
    # A trial takes 20 s: 13 s of load, 5 s until the host is quiet, 2 s around it.
    plan = _dry_run(capsys, *two, "--budget", "8m")
    assert (plan["runs"], plan["conclusions"]) == (12, [])
    short = _dry_run(capsys, *two, "--budget", "90s")
    assert short["runs"] == 2
    assert short["conclusions"] == [
        "This budget allows 2 rounds of 2 servers, but at least 4 rounds are needed. Use "
        "--budget 3m."
    ]
    assert _dry_run(capsys, *two, "--budget", "3m")["conclusions"] == []


def test_a_budget_says_who_has_to_qualify(capsys: pytest.CaptureFixture[str]) -> None:
    grid = ("--servers", "gunicorn-gthread", "--grid", "workers=1,2,4", "threads=1,2,4,8")
    plan = _dry_run(capsys, *grid, "--budget", "15m")
    # 12 and 6 short trials of 6.5 s, then 25 s per trial on a host that is never quiet.
    assert plan["conclusions"] == [
        "Short trials of 12 configurations select at most 6 for the race, in about 78 s per load "
        "level."
    ]
    assert (plan["qualifying"]["rounds"], plan["estimated_seconds"]) == (1, 900)

    short = _dry_run(capsys, *grid, "--budget", "5m", "--slo", "p99<50ms")
    assert (short["qualifying"]["rounds"], short["qualifying"]["field"]) == (1, 2)
    assert short["runs"] >= 1 + 4
    none = _dry_run(capsys, *grid, "--budget", "90s", "--slo", "p99<50ms")
    assert "at least 4 rounds are needed. Use --budget 4m." in none["conclusions"][-1]


def test_rates_come_one_after_the_other_where_an_objective_is_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("--servers", "gunicorn-sync,waitress", "--rate", "100,300", "--budget", "10m")
    ordered = _dry_run(capsys, *words, "--slo", "p99<50ms")["order"]
    levels = [name.partition("@")[2].partition("#")[0] for name in ordered]
    assert levels == sorted(levels, key=float, reverse=True)
    mixed = [name.partition("@")[2].partition("#")[0] for name in _dry_run(capsys, *words)["order"]]
    assert mixed != sorted(mixed, key=float, reverse=True)


def _many(budget_s: float) -> Experiment:
    server = ServerOptions(grid={"workers": [1, 2, 4], "threads": [1, 4]})
    options = SweepOptions(budget=budget_s, slo=("p99<50ms",))
    spec = SweepSpec(servers=["gunicorn-gthread", "granian"], server=server, options=options)
    return experiment_of(spec)


def test_rates_are_found_within_the_budget_and_the_race_gets_what_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[tuple[Experiment, int]] = []

    def find(experiment: Experiment, _log: object, look_ns: int) -> tuple[Level, ...]:
        looked.append((experiment, look_ns))
        return (Level(rate_per_s=200.0), Level(rate_per_s=400.0))

    monkeypatch.setattr(_initial_rates, "find_levels", find)
    planned = _many(300.0)
    found = _initial_rates.with_initial_rates(planned, print)
    assert found.budget_ns == planned.budget_ns
    assert [level.rate_per_s for level in found.levels] == [200.0, 400.0]
    assert found.runs < planned.runs

    [(look, look_ns)] = looked
    assert (look.qualifying, look.budget_ns, look_ns) == (None, None, 2_000_000_000)
    assert look.load.load_ns < planned.load.load_ns


def test_a_budget_that_finding_rates_would_use_up_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"too short to find rates for 12 configurations"
    ) as refused:
        _initial_rates.require_possible_rates(_many(60.0))
    assert "use --rates, or --budget 2m" in refused.value.args
    _initial_rates.require_possible_rates(_many(120.0))
