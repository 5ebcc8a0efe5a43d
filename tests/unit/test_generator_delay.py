"""Delays that the generator may have caused are not attributed to a server."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from wsgiload.analysis.comparison import compare_runs, compare_servers
from wsgiload.analysis.objective import parse_objective
from wsgiload.analysis.over_cells import analyse
from wsgiload.analysis.threshold import failed_thresholds, parse_threshold, undecided_thresholds
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.load_report import Blame, ErrorBudget
from wsgiload.report.over_runs import comparison_lines

from .filled import filled_summary, verdict
from .invented_cells import cell, experiment

SLOW_AND_FAST = {"gthread": 30e6, "sync": 20e6}
DELAY = "the generator's delay could explain the difference"


def delayed(
    cells: Sequence[CellResult], server: str, share: float, bound_status: str = "upper_bound"
) -> list[CellResult]:
    """The generator may have added up to ``share`` to each p99 of this server."""
    return [
        _delayed(result, share, bound_status) if result.server == server else result
        for result in cells
    ]


def _delayed(result: CellResult, share: float, bound_status: str) -> CellResult:
    value = (result.offered_quantiles_ns or {})["0.99"].high
    assert value is not None
    budget = ErrorBudget(
        value=value,
        generator=(round(value * (1 - share)), value),
        sampling_95=None,
        noise_floor=None,
        undisturbed=None,
        band=None,
        bound_status=bound_status,  # type: ignore[arg-type]
    )
    return msgspec.structs.replace(result, error_budget_ns={"0.99": budget})


CELLS = experiment(1, SLOW_AND_FAST)


@pytest.mark.parametrize(
    ("cells", "conclusion", "reason"),
    [
        (CELLS, "different", None),
        # A share of 0.33 could explain the whole difference, 0.05 could not.
        (delayed(CELLS, "gthread", 0.33), "undecided", DELAY),
        (delayed(CELLS, "gthread", 0.05), "different", None),
        # Without the delay, the faster server would be even faster.
        (delayed(CELLS, "sync", 0.33), "different", None),
        # The band of the true value already includes the generator's delay.
        (delayed(CELLS, "gthread", 0.33, "bounded"), "different", None),
    ],
)
def test_a_difference_that_the_generator_may_have_caused_is_undecided(
    cells: Sequence[CellResult], conclusion: str, reason: str | None
) -> None:
    [entry] = compare_servers(cells)
    assert (entry.conclusion, entry.reason) == (conclusion, reason)


def test_the_report_gives_the_reason() -> None:
    summary = analyse(filled_summary({"runs": 6}, delayed(CELLS, "gthread", 0.33)))
    assert any(DELAY in line for line, _ in comparison_lines(summary))


def test_a_change_between_runs_that_the_generator_may_have_caused_is_undecided() -> None:
    after = [result for result in CELLS if result.server == "gthread"]
    before = [
        msgspec.structs.replace(result, id=result.id.replace("sync", "gthread"), server="gthread")
        for result in CELLS
        if result.server == "sync"
    ]
    [undelayed] = compare_runs(before, after)
    [delayed_change] = compare_runs(before, delayed(after, "gthread", 0.33))

    assert (undelayed.conclusion, delayed_change.conclusion, delayed_change.reason) == (
        "different",
        "undecided",
        DELAY,
    )


def test_a_race_is_undecided_if_the_generator_may_have_caused_the_lead() -> None:
    plan = {"runs": 11, "budget_s": 600.0, "rates": (1000.0,), "cpus": 1.0}
    undelayed = analyse(filled_summary(plan, experiment(1, SLOW_AND_FAST, 8)))
    with_delay = analyse(
        filled_summary(plan, delayed(experiment(1, SLOW_AND_FAST, 8), "gthread", 0.33))
    )

    assert undelayed.races is not None and with_delay.races is not None
    assert [race.outcome for race in undelayed.races] == ["winner"]
    assert [race.outcome for race in with_delay.races] == ["undecided"]
    assert [entry.conclusion for entry in with_delay.comparisons or ()] == ["undecided"]


def _delayed_run(
    added_ms: float, value_ms: float = 60, bound_status: str = "upper_bound"
) -> CellResult:
    """A run to whose p99 the generator may have added ``added_ms``."""
    run = _delayed(cell("sync", p99_ns=value_ms * 1e6), added_ms / value_ms, bound_status)
    return msgspec.structs.replace(run, verdict=verdict("warn", "host"))


@pytest.mark.parametrize(
    ("result", "failed", "undecided"),
    [
        (_delayed_run(8), ["threshold p99<50ms failed"], []),
        (
            _delayed_run(12),
            [],
            [
                "threshold p99<50ms undecided: the generator's delay may account for up to 12.0 ms "
                "of p99. Repeat on an idle machine"
            ],
        ),
        (_delayed_run(12, bound_status="bounded"), ["threshold p99<50ms failed"], []),
        # If the upper bound meets the limit, the true value does, too.
        (_delayed_run(12, value_ms=40), [], []),
    ],
)
def test_a_threshold_is_undecided_if_the_generator_may_have_caused_the_miss(
    result: CellResult, failed: list[str], undecided: list[str]
) -> None:
    thresholds = [parse_threshold("p99<50ms")]
    assert failed_thresholds(thresholds, [("", result)]) == failed
    assert undecided_thresholds(thresholds, [("", result)]) == undecided


def test_a_trial_near_its_limit_is_doubtful_if_the_generator_was_delayed() -> None:
    objective = parse_objective(["p99<50ms"])
    near, far, undelayed = (
        objective.judge(run)
        for run in (
            _delayed_run(12),
            _delayed_run(90, 200),
            _delayed_run(12, bound_status="bounded"),
        )
    )

    assert (near.met, near.is_doubtful) == (False, True)
    assert near.disturbance == "the generator's delay may account for up to 12.0 ms of p99"
    assert (far.met, far.is_doubtful) == (False, False)
    assert (undelayed.met, undelayed.disturbance) == (False, None)


@pytest.mark.parametrize(("blame", "met"), [("client", None), ("server", False)])
def test_a_trial_that_another_check_made_invalid_is_not_judged_by_its_figures(
    blame: Blame, met: bool | None
) -> None:
    late = msgspec.structs.replace(_delayed_run(12, value_ms=40), verdict=verdict("invalid", blame))

    judgement = parse_objective(["p99<50ms"]).judge(late)

    assert (judgement.met, judgement.disturbance) == (met, None)
