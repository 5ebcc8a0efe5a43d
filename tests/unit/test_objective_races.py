"""A race for the leanest setting that meets an objective: which settings it measures, when it ends
and what it recommends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from wsgiload.analysis.objective import parse_objective
from wsgiload.analysis.objective_races import objective_state
from wsgiload.analysis.over_cells import analyse
from wsgiload.documents.answer import Recommendation
from wsgiload.documents.cell_result import CellFailure, CellResult
from wsgiload.documents.summary import Summary
from wsgiload.procedures.race import ObjectiveState
from wsgiload.report.answer import answer_of
from wsgiload.report.first_screen import shown_levels
from wsgiload.report.recommendation import recommendation_lines

from .filled import filled_summary, outcomes, rates, reason, resources, verdict
from .invented_cells import cell

MS, MIB = 1e6, 1024**2
OBJECTIVE = parse_objective(["p99<50ms"])
BLOCKS = 8
KILLED = CellFailure(step="load", message="killed", log_tail="")
FACTORS = (1.0, 0.97, 1.03, 0.99, 1.02, 1.01, 0.98, 1.0)


def _trial(name: str, run: int, p99_ms: float, mib: int = 50, **more: Any) -> CellResult:
    memory = {"resources": resources(memory_peak_bytes=mib * MIB)}
    return cell(name, run, p99_ms * MS * FACTORS[run - 1], **memory | more)


def _runs(name: str, runs: range, p99_ms: float, mib: int = 50, **more: Any) -> list[CellResult]:
    return [_trial(name, run, p99_ms, mib, **more) for run in runs]


def _state(servers: Sequence[str], cells: list[CellResult]) -> ObjectiveState:
    return objective_state(1000.0, tuple(servers), cells, OBJECTIVE, BLOCKS)


FIRST, DECIDING = range(1, 2), range(2, 6)


def test_before_the_first_trial_every_setting_is_a_contender() -> None:
    state = _state("abc", [])
    assert (state.outcome, state.contenders) == ("undecided", ("a", "b", "c"))


def test_the_first_block_drops_misses_and_keeps_the_leanest_and_the_fastest() -> None:
    memory_mib = {"a": 10, "b": 20, "c": 30, "d": 40, "e": 50, "f": 60}
    p99_ms = {"a": 45.0, "b": 30.0, "c": 29.0, "d": 28.0, "e": 27.0, "f": 200.0}
    cells = [_trial(name, 1, p99_ms[name], memory_mib[name]) for name in memory_mib]
    state = _state("abcdef", cells)
    assert set(state.contenders) == {"a", "b", "d", "e"}
    assert {drop.server: drop.behind for drop in state.dropped} == {"c": "a", "f": None}
    assert all(drop.after_block == 1 for drop in state.dropped)


@pytest.mark.parametrize(
    ("p99_ms", "more", "stays"),
    [
        (60.0, {}, True),  # a launch near the limit decides nothing
        (80.0, {}, False),
        (80.0, {"verdict": verdict("invalid", "host")}, True),  # invalid because of the host
        (10.0, {"verdict": verdict("invalid", "server")}, False),
        (10.0, {"verdict": verdict("invalid", "server"), "failure": KILLED}, False),
    ],
)
def test_only_a_clear_miss_drops_a_setting(
    p99_ms: float, more: Mapping[str, Any], stays: bool
) -> None:
    cells = [_trial("a", 1, 10.0), _trial("b", 1, p99_ms, **more)]
    assert ("b" in _state("ab", cells).contenders) is stays


def test_the_leanest_wins_after_it_met_the_objective_in_four_further_blocks() -> None:
    def state(blocks: int) -> ObjectiveState:
        runs = range(1, blocks + 1)
        cells = [*_runs("lean", runs, 20.0, 20), *_runs("quick", runs, 5.0, 80)]
        return _state(("lean", "quick"), cells)

    assert state(4).outcome == "undecided", "the first block does not count"
    assert (state(5).outcome, state(5).contenders) == ("winner", ("lean", "quick"))


def test_a_repeated_trial_counts_once_by_its_least_disturbed_attempt() -> None:
    runs = _runs("a", FIRST, 20) + _runs("a", DECIDING, 20)
    undisturbed = [msgspec.structs.replace(trial, disturbed_s=0.0) for trial in runs]
    repeated = msgspec.structs.replace(
        _trial("a", 3, 200, attempt=2, disturbed_s=9.0), id=f"{undisturbed[2].id}.2"
    )
    assert _state("a", [*undisturbed, repeated]) == _state("a", undisturbed)


def test_a_setting_that_missed_drops_out_if_another_never_missed() -> None:
    cells = [
        *_runs("a", FIRST, 20.0, 20),
        *_runs("b", FIRST, 20.0, 80),
        _trial("a", 2, 70.0, 20),
        _trial("b", 2, 20.0, 80),
    ]
    state = _state("ab", cells)

    assert (state.outcome, state.contenders) == ("undecided", ("b",))

    [drop] = state.dropped
    assert (drop.server, drop.after_block) == ("a", 2)


@pytest.mark.parametrize(("p99_ms", "stays"), [(60.0, True), (200.0, False)])
def test_a_disturbed_miss_counts_only_far_from_the_limit(p99_ms: float, stays: bool) -> None:
    busy = {"verdict": verdict("warn", "host", reason("contaminated", "warn", "others"))}
    cells = [
        *_runs("a", FIRST, 20.0, 20),
        *_runs("b", FIRST, 20.0, 80),
        _trial("a", 2, p99_ms, 20, **busy),
        _trial("b", 2, 20.0, 80),
    ]
    assert ("a" in _state("ab", cells).contenders) is stays


def test_a_race_fails_if_every_setting_missed_twice() -> None:
    cells = [*_runs("a", FIRST, 40.0), *_runs("a", range(2, 4), 70.0)]
    assert (_state("a", cells).outcome, _state("a", cells).contenders) == ("failed", ())


@pytest.mark.parametrize(
    ("p99s_ms", "ends"),
    [
        ((40, 40, 40, 60), True),
        ((60, 40), False),  # a second miss would be a certain one
        ((60, 40, 40), True),
        ((40, 40, 40), False),
    ],
)
def test_a_rate_ends_once_no_setting_can_meet_the_objective(
    p99s_ms: Sequence[float], ends: bool
) -> None:
    cells = [_trial("a", run, p99) for run, p99 in enumerate((40, *p99s_ms), start=1)]
    state = _state("a", cells)
    assert (state.outcome, state.is_decided) == ("undecided", ends)
    result = _recommendation(_summary(cells)).no_recommendation
    assert result is not None
    assert ("--budget" in result.needs) is not ends
    assert ("looser" in result.needs) is ends


def test_more_blocks_than_the_budget_allowed_need_a_longer_one_up_to_a_limit() -> None:
    def needs(blocks: int) -> str:
        cells = [cell("a", run, (5 if run == 2 else 49) * MS) for run in range(1, blocks + 1)]
        summary = _summary(cells, (1000.0,))
        facts = msgspec.structs.replace(summary.experiment, runs=blocks, budget_s=30.0)
        result = _recommendation(analyse(msgspec.structs.replace(summary, experiment=facts)))
        chosen = result.recommended or result.no_recommendation
        assert chosen is not None and chosen.needs is not None
        return chosen.needs

    # 20 launches of 12 s.
    assert needs(9).startswith("use --budget 4m")
    assert "--budget" not in needs(20)


def test_an_interval_that_contains_the_limit_requires_further_rounds() -> None:
    near = [
        _trial("a", 1, 40.0),
        *(_trial("a", run, p99) for run, p99 in zip(DECIDING, (30, 45, 49, 48), strict=True)),
    ]
    assert _state("a", near).outcome == "undecided"


def test_a_setting_whose_goodput_at_a_higher_rate_is_far_too_low_drops_out() -> None:
    slow = _trial("a", 1, 900.0, rate=2000.0, rate_result=rates(300.0))
    fast = _trial("b", 1, 90.0, rate=2000.0, rate_result=rates(1900.0))
    assert _state("ab", [slow, fast]).contenders == ("b",)


# --- the summary


def _summary(cells: list[CellResult], rates_per_s: tuple[float, ...] = (1000.0,)) -> Summary:
    facts = {
        "runs": BLOCKS,
        "budget_s": 300.0,
        "duration_s": 10.0,
        "slo": tuple(OBJECTIVE.texts),
        "servers": tuple(dict.fromkeys(one.id.rpartition("@")[0] for one in cells)),
        "rates": rates_per_s,
    }
    return analyse(filled_summary(facts, cells))


def _recommendation(summary: Summary) -> Recommendation:
    [recommendation] = summary.recommendations or ()
    return recommendation


WON = [
    *_runs("lean", range(1, 6), 20.0, 20),
    *_runs("quick", range(1, 6), 5.0, 80),
    *_runs("slow", FIRST, 400.0, 10),
]


def test_the_leanest_is_recommended_and_the_others_are_mentioned() -> None:
    summary = _summary(WON)
    recommended = _recommendation(summary).recommended
    assert recommended is not None
    assert (recommended.server, recommended.runs, recommended.also_meets, recommended.tied) == (
        "lean",
        4,
        ("quick",),
        (),
    )
    assert recommended.interval_95 is not None
    assert recommended.interval_95[0] < 20 * MS < recommended.interval_95[1] < 50 * MS

    answer = answer_of(summary)
    assert answer.status == "decided"
    assert answer.sentence.startswith(
        "Recommended: lean, the leanest of 2 configurations that meet p99<50ms and error_rate<=0.1% at "
        "1,000/s (p99 20.0 ms, "
    )
    assert "quick also meets the objective." in answer.sentence
    assert "Of 3 configurations, 1 missed the objective in the first block." in answer.sentence
    assert [entry.label for entry in answer.ranking[0].entries] == ["lean", "quick", "slow"]


def test_an_undecided_race_names_the_budget_that_would_decide_it() -> None:
    undecided = _recommendation(
        _summary([trial for trial in WON if trial.run < 4])
    ).no_recommendation
    assert undecided is not None
    assert (
        undecided.reason == "lean met the objective in all 2 runs at 1,000/s, but 4 runs are needed"
    )
    # Two more rounds of two settings, 20 s each, beyond the budget of 5 minutes.
    assert undecided.needs.startswith("use --budget ")
    assert int(undecided.needs.removeprefix("use --budget ").removesuffix("m")) in (6, 7)


def test_one_deciding_launch_is_counted_in_the_singular() -> None:
    undecided = _recommendation(
        _summary([trial for trial in WON if trial.run < 3])
    ).no_recommendation
    assert undecided is not None
    assert undecided.reason.startswith("lean met the objective in 1 run at 1,000/s, but 4 runs")


def test_a_setting_that_met_the_objective_in_every_run_of_an_undecided_race_is_probable() -> None:
    """p99 varies so much that the mean over further runs may exceed the limit."""
    varied = [
        _trial("lean", run, p99, 20) for run, p99 in zip(DECIDING, (4, 46, 5, 45), strict=True)
    ]
    summary = _summary([_trial("lean", 1, 20.0, 20), _trial("slow", 1, 400.0, 10), *varied])
    recommended = _recommendation(summary).recommended
    assert recommended is not None
    assert (recommended.server, recommended.runs) == ("lean", 4)
    assert recommended.needs is not None and recommended.needs.startswith("use --budget ")

    answer = answer_of(summary)
    assert (answer.status, answer.needs) == ("undecided", recommended.needs)
    assert answer.sentence.startswith(
        "Probably lean, which met p99<50ms and error_rate<=0.1% in all 4 runs at 1,000/s (p99 "
    )
    assert recommended.needs.endswith("m, because the runs vary too much for a conclusive result")
    [line] = recommendation_lines(summary.recommendations or ())
    assert line.endswith(f" U{recommended.needs[1:]}.")


def test_the_recommendation_is_for_the_highest_rate_that_meets_the_objective() -> None:
    high = [
        _trial(name, 1, 400.0, rate=2000.0, rate_result=rates(1500.0)) for name in ("lean", "quick")
    ]
    summary = _summary([*high, *WON], (1000.0, 2000.0))
    recommended = _recommendation(summary).recommended
    assert recommended is not None
    assert (recommended.server, recommended.rate_per_s) == ("lean", 1000.0)


def test_the_report_judges_with_the_variance_of_configurations_that_dropped_out() -> None:
    p99s_ms = {"a": (39, 39, 42, 35, 40), "b": (40, 48, 49, 48, 51)}
    cells = [
        cell(name, run, p99_ms * MS)
        for name, of_one in p99s_ms.items()
        for run, p99_ms in enumerate(of_one, start=1)
    ]
    state = _state("ab", cells)
    assert (state.outcome, state.contenders) == ("winner", ("a",))
    recommended = _recommendation(_summary(cells)).recommended
    assert recommended is not None and recommended.server == "a"


def test_a_higher_rate_that_was_not_decided_leaves_the_highest_rate_open() -> None:
    needs = []
    for high in ([], [_trial("lean", 1, 20.0, 20, rate=2000.0)]):
        recommended = _recommendation(_summary([*high, *WON], (1000.0, 2000.0))).recommended
        assert recommended is not None and recommended.needs is not None
        assert (recommended.server, recommended.rate_per_s) == ("lean", 1000.0)
        needs.append(recommended.needs)
    assert needs[0].startswith("use --budget ")
    assert all(one.endswith("m, because 2,000/s was not decided") for one in needs)


def test_a_setting_that_certainly_meets_the_objective_is_named_before_an_undecided_leaner_one() -> (
    None
):
    varied = [_trial("lean", run, p99, 20) for run, p99 in enumerate((20, 4, 46, 5, 45), start=1)]
    cells = [*varied, *_runs("quick", range(1, 6), 5.0, 80)]
    state = _state(("lean", "quick"), cells)
    assert (state.outcome, state.is_met) == ("undecided", True)
    recommended = _recommendation(_summary(cells)).recommended
    assert recommended is not None and recommended.needs is not None
    assert recommended.server == "quick"
    assert recommended.needs.endswith("m, because lean is leaner and not decided")


def test_the_table_shows_the_rate_of_the_recommendation() -> None:
    """Even if a setting sustains a higher rate, at which it misses the objective."""
    summary = _summary([_trial("lean", 1, 400.0, rate=2000.0), *WON], (1000.0, 2000.0))
    answer = answer_of(summary)
    assert answer.ranking[0].entries[0].status == "ranked"
    assert [shown.level for shown in shown_levels(answer, summary)] == ["1,000/s"]


def test_the_objective_is_missed_if_no_setting_meets_it() -> None:
    result = _recommendation(_summary(_runs("slow", FIRST, 400.0))).no_recommendation
    assert result is not None
    assert result.is_missed
    assert result.reason.startswith("no configuration meets p99<50ms")


def test_the_objective_is_missed_if_all_are_too_slow_for_the_lower_rates_too() -> None:
    slow = _runs("slow", FIRST, 400.0, rate_result=rates(300.0))
    result = _recommendation(_summary(slow, (500.0, 1000.0))).no_recommendation
    assert result is not None
    assert (result.is_missed, result.needs) == (True, "use lower --rates, or a looser objective")


def test_if_every_trial_failed_the_failure_is_named() -> None:
    broken = {"verdict": verdict("invalid", "server"), "failure": KILLED}
    failed = _runs("a", FIRST, 1.0, rate_result=rates(0.0), **broken)
    result = _recommendation(_summary(failed, (500.0, 1000.0))).no_recommendation
    assert result is not None
    assert (result.is_missed, result.reason) == (True, "every trial failed, the first of a: killed")


def test_an_incomplete_race_does_not_miss_the_objective() -> None:
    """After an interrupt, or if the budget was too short."""
    summary = _summary(_runs("slow", FIRST, 400.0))
    facts = msgspec.structs.replace(summary.experiment, servers=("slow", "later"))
    result = _recommendation(
        analyse(msgspec.structs.replace(summary, experiment=facts))
    ).no_recommendation
    assert result is not None
    assert (result.is_missed, result.reason) == (
        False,
        "the race ended after the first block at 1,000/s; the best so far is slow (p99 400 ms)",
    )

    high = _summary(_runs("slow", FIRST, 400.0), (500.0, 1000.0))
    result = _recommendation(high).no_recommendation
    assert result is not None
    assert not result.is_missed
    assert result.reason.endswith(
        "at 1,000/s, and lower rates were not measured; the best so far is slow (p99 400 ms)"
    )
    assert result.needs == "use --budget 10m, or lower --rates"


def test_lower_rates_that_were_not_reached_come_before_a_rate_that_cannot_be_decided() -> None:
    cells = [_trial("a", run, p99) for run, p99 in enumerate((40, 40, 40, 60), start=1)]
    result = _recommendation(_summary(cells, (500.0, 1000.0))).no_recommendation
    assert result is not None
    assert "lower rates were not measured" in result.reason


def test_a_launch_with_too_few_requests_for_p99_still_drops_misses() -> None:
    few = [
        _trial("a", 1, 10.0, outcomes=outcomes(600)),
        _trial("b", 1, 90.0, outcomes=outcomes(600)),
    ]
    assert _state("ab", few).contenders == ("a",)


def test_a_server_that_could_not_run_is_named_with_its_cause() -> None:
    broken = _trial("broken", 1, 1.0, verdict=verdict("invalid", "server"), failure=KILLED)
    answer = answer_of(_summary([*WON, broken]))
    assert "broken failed and is not ranked: killed" in answer.warnings
