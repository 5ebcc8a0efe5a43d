"""A server is not called slower for what the generator may have added to its response times."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from wsgiload.analysis.comparison import compare_runs, compare_servers
from wsgiload.analysis.disturbance import duration_words
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
    """Of every p99 of this server, the generator may have added ``share``."""
    return [_delayed(one, share, bound_status) if one.server == server else one for one in cells]


def _delayed(one: CellResult, share: float, bound_status: str) -> CellResult:
    value = (one.offered_quantiles_ns or {})["0.99"].high
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
    return msgspec.structs.replace(one, error_budget_ns={"0.99": budget})


CELLS = experiment(1, SLOW_AND_FAST)


@pytest.mark.parametrize(
    ("cells", "finding", "reason"),
    [
        (CELLS, "different", None),
        # A third is the whole difference, a twentieth is little of it.
        (delayed(CELLS, "gthread", 0.33), "undecided", DELAY),
        (delayed(CELLS, "gthread", 0.05), "different", None),
        # The faster one was faster still.
        (delayed(CELLS, "sync", 0.33), "different", None),
        # The generator's part is inside the band.
        (delayed(CELLS, "gthread", 0.33, "bounded"), "different", None),
    ],
)
def test_servers_differ_by_more_than_the_generator_may_have_added(
    cells: Sequence[CellResult], finding: str, reason: str | None
) -> None:
    [entry] = compare_servers(cells)
    assert (entry.conclusion, entry.reason) == (finding, reason)


def test_the_reason_is_said() -> None:
    summary = analyse(filled_summary({"runs": 6}, delayed(CELLS, "gthread", 0.33)))
    assert any(DELAY in line for line, _ in comparison_lines(summary))


def test_a_run_is_not_slower_than_another_by_what_the_generator_may_have_added() -> None:
    now = [one for one in CELLS if one.server == "gthread"]
    before = [
        msgspec.structs.replace(one, id=one.id.replace("sync", "gthread"), server="gthread")
        for one in CELLS
        if one.server == "sync"
    ]
    [plain] = compare_runs(before, now)
    [late] = compare_runs(before, delayed(now, "gthread", 0.33))
    assert (plain.conclusion, late.conclusion, late.reason) == ("different", "undecided", DELAY)


def test_a_race_is_not_won_by_what_the_generator_may_have_added() -> None:
    plan = {"runs": 11, "budget_s": 600.0, "rates": (1000.0,), "cpus": 1.0}
    plain = analyse(filled_summary(plan, experiment(1, SLOW_AND_FAST, 8)))
    late = analyse(filled_summary(plan, delayed(experiment(1, SLOW_AND_FAST, 8), "gthread", 0.33)))
    assert plain.races is not None and late.races is not None
    assert [race.outcome for race in plain.races] == ["winner"]
    assert [race.outcome for race in late.races] == ["undecided"]
    assert [entry.conclusion for entry in late.comparisons or ()] == ["undecided"]


def _late(added_ms: float, value_ms: float = 60, bound_status: str = "upper_bound") -> CellResult:
    """A run whose p99 the generator may have lengthened by so much."""
    late = _delayed(cell("sync", p99_ns=value_ms * 1e6), added_ms / value_ms, bound_status)
    return msgspec.structs.replace(late, verdict=verdict("warn", "host"))


@pytest.mark.parametrize(
    ("result", "failed", "undecided"),
    [
        (_late(8), ["threshold p99<50ms failed"], []),
        (
            _late(12),
            [],
            [
                "threshold p99<50ms undecided: the generator's delay may account for up to 12 ms "
                "of p99. Repeat on an idle machine"
            ],
        ),
        (_late(12, bound_status="bounded"), ["threshold p99<50ms failed"], []),
        # An upper bound below the limit meets it all the more.
        (_late(12, value_ms=40), [], []),
    ],
)
def test_a_limit_that_only_the_generator_may_have_missed_is_undecided(
    result: CellResult, failed: list[str], undecided: list[str]
) -> None:
    thresholds = [parse_threshold("p99<50ms")]
    assert failed_thresholds(thresholds, [("", result)]) == failed
    assert undecided_thresholds(thresholds, [("", result)]) == undecided


def test_a_trial_near_its_limit_is_doubtful_if_the_generator_was_late() -> None:
    objective = parse_objective(["p99<50ms"])
    near, far, punctual = (
        objective.judge(one)
        for one in (_late(12), _late(90, 200), _late(12, bound_status="bounded"))
    )
    assert (near.met, near.is_doubtful) == (False, True)
    assert near.disturbance == "the generator's delay may account for up to 12 ms of p99"
    assert (far.met, far.is_doubtful) == (False, False)
    assert (punctual.met, punctual.disturbance) == (False, None)


@pytest.mark.parametrize(("blame", "met"), [("client", None), ("server", False)])
def test_a_trial_that_another_check_made_invalid_is_not_judged_by_its_figures(
    blame: Blame, met: bool | None
) -> None:
    late = msgspec.structs.replace(_late(12, value_ms=40), verdict=verdict("invalid", blame))

    judgement = parse_objective(["p99<50ms"]).judge(late)

    assert (judgement.met, judgement.disturbance) == (met, None)


@pytest.mark.parametrize(
    ("duration_ns", "text"),
    [
        (500, "500 ns"),
        (817_000, "817 µs"),
        (999_600, "1 ms"),
        (1_444_000, "1.44 ms"),
        (1_440_000_000, "1.44 s"),
    ],
)
def test_a_duration_has_the_largest_unit_of_which_it_is_at_least_one(
    duration_ns: int, text: str
) -> None:
    assert duration_words(duration_ns) == text
