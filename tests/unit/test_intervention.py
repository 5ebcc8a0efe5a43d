"""The effect of lifting a limit, from simulated pairs of runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from wsgiload.attribution.intervention import Half, Pair, Trial, effect_of, first_halves, sentences
from wsgiload.documents.attribution_result import (
    AttributionResult,
    ExposureResult,
    FingerprintResult,
    ShareInterval,
)
from wsgiload.documents.cell_result import CellResult
from wsgiload.errors import UsageError
from wsgiload.experiment.plan import Cell, Experiment, expand
from wsgiload.host.cpus import CpuPlan
from wsgiload.limits import Limits
from wsgiload.loads.options import Level, LoadSettings
from wsgiload.loads.request import Request
from wsgiload.statistics.effect import t_quantile
from wsgiload.sweeps.intervene import further_runs, intervene, pairs_of, require_liftable

from .filled import exactly, filled_cell, outcomes, verdict

MS = 1_000_000
EXPERIMENT = Experiment(
    name="hello",
    app="hello:app",
    app_dir=Path("/apps"),
    request=Request(),
    load=LoadSettings(duration_ns=1000 * MS),
    levels=(Level(rate_per_s=100.0), Level(rate_per_s=200.0)),
)


def run(upper_ms: float | None, *, throttled: bool = False, scheduled: int = 2000) -> CellResult:
    bounds = exactly(None if upper_ms is None else upper_ms * MS)
    return filled_cell(
        verdict=verdict(),
        outcomes=outcomes(scheduled),
        offered_quantiles_ns={"0.5": bounds, "0.9": bounds, "0.99": bounds},
        attribution=attribution(throttled=throttled),
    )


def attribution(*, throttled: bool) -> AttributionResult:
    """All requests overlapped with throttling, or none."""
    all_requests = ShareInterval(value=1.0, low=None, high=None)
    exposure = ExposureResult(
        event="throttled", slowest=all_requests, all=all_requests, risk_ratio=None
    )
    fingerprint = FingerprintResult(
        name="throttling", sentence="", rule="", source="", value=1.0, limit=0.01
    )
    return AttributionResult(
        slowest=None,
        slowest_ratio=None,
        resolution_ns=100 * MS,
        exposures=(exposure,) if throttled else (),
        fingerprints=(fingerprint,) if throttled else (),
        worker_imbalance=None,
        other_cpu_ratio=None,
        cpu_wait_ratio=None,
    )


def pairs(*changes: tuple[float | None, float | None]) -> list[Pair]:
    return [Pair("limited", run(before, throttled=True), run(after)) for before, after in changes]


def test_the_factor_is_a_geometric_mean_with_bounds_from_students_t() -> None:
    effect = effect_of(pairs((100, 40), (100, 50), (100, 40), (100, 50)))
    assert effect is not None and effect.low is not None and effect.high is not None
    assert effect.quantile == 0.99
    assert effect.factor == pytest.approx((0.4 * 0.5) ** 0.5)
    # ln 0.4 and ln 0.5 twice each: standard error 0.06442, t(0.975, 3) = 3.1824
    assert (
        effect.high / effect.factor
        == pytest.approx(effect.factor / effect.low)
        == pytest.approx(1.2275, abs=1e-3)
    )
    assert t_quantile(0.975, 3) == pytest.approx(3.18245, abs=1e-5)


def test_three_pairs_have_no_bounds_and_an_infinite_quantile_is_not_counted() -> None:
    effect = effect_of(pairs((100, 40), (100, 50), (100, 40), (None, 40)))
    assert effect is not None and (effect.low, effect.high, effect.pairs) == (None, None, 3)
    assert "too few for a confidence interval" in sentences(pairs((100, 40)), effect)[0]
    assert effect_of(pairs((None, 40))) is None
    assert sentences(pairs((None, 40)), None)[0].startswith(
        "The effect of lifting the CPU limit is unknown"
    )


@pytest.mark.parametrize(("scheduled", "quantile"), [(1000, 0.99), (999, 0.9), (20, 0.5), (8, 0.5)])
def test_the_quantile_is_the_highest_with_enough_requests(scheduled: int, quantile: float) -> None:
    effect = effect_of([Pair("lifted", run(9, scheduled=scheduled), run(3, scheduled=scheduled))])
    assert effect is not None and effect.quantile == quantile


@pytest.mark.parametrize("half", ["limited", "lifted"])
def test_a_pair_with_an_invalid_run_is_excluded(half: Half) -> None:
    invalid_pair = pairs((100, 1))[0]
    invalid_run = msgspec.structs.replace(
        getattr(invalid_pair, half), verdict=verdict("invalid", "client"), outcomes=outcomes(10)
    )
    invalid_pair = replace(invalid_pair, **{half: invalid_run})
    measured = [invalid_pair, *pairs((100, 50))]
    effect = effect_of(measured)

    assert effect is not None and (effect.pairs, effect.quantile, effect.factor) == (
        1,
        0.99,
        pytest.approx(0.5),
    )
    assert "occurred in 1 of 1 runs with the CPU limit" in sentences(measured, effect)[1]
    assert effect_of([invalid_pair] * 6) is None
    assert sentences([invalid_pair] * 6, None) == [
        "The effect of lifting the CPU limit is unknown: in no pair of runs are both quantiles "
        "valid and finite."
    ]


def test_an_intervention_is_described_in_sentences() -> None:
    measured = pairs(*[(100, 40), (100, 42)] * 3)
    lifted, throttling = sentences(measured, effect_of(measured))
    assert (
        lifted
        == "Lifting the CPU limit changed p99 by a factor of 0.41 [0.40, 0.42] in 6 pairs of runs."
    )
    assert throttling == (
        "Throttling occurred in 6 of 6 runs with the CPU limit (all requests overlapped a "
        "throttled period) and in none without it."
    )

    measured[0].lifted = run(40, throttled=True)
    assert len(sentences(measured, effect_of(measured))) == 1


def test_the_order_of_the_halves_is_balanced_and_reproducible() -> None:
    orders = first_halves(6, 7)
    assert sorted(orders) == ["lifted"] * 3 + ["limited"] * 3
    assert orders == first_halves(6, 7)
    assert len({tuple(first_halves(6, seed)) for seed in range(20)}) > 3


def test_pairs_share_their_arrivals_and_cells_are_interleaved() -> None:
    measured: list[tuple[Cell, Half]] = []

    def record(cell: Cell, half: Half) -> CellResult:
        measured.append((cell, half))
        return run(1)

    cells = expand(EXPERIMENT, ("waitress",))
    trials, is_complete = intervene(cells, EXPERIMENT, record)
    assert is_complete and pairs_of(EXPERIMENT) == 6
    assert [(trial.pairs, trial.valid_pairs) for trial in trials] == [(6, 6)] * 2
    assert len({cell.id for cell, _ in measured}) == len(measured) == 24

    run_pairs = [measured[index : index + 2] for index in range(0, 24, 2)]
    assert all(
        first[0].seed == second[0].seed and {first[1], second[1]} == {"limited", "lifted"}
        for first, second in run_pairs
    )
    assert len({first[0].seed for first, _ in run_pairs}) == 12

    levels = [first[0].level for first, _ in run_pairs]
    assert levels == [cell.level for cell in cells] * 6

    further = further_runs(cells, replace(EXPERIMENT, intervene="cpu"))
    assert sorted(cell.level.text for cell in further) == sorted(
        cell.level.text for cell, _ in measured
    )
    assert further_runs(cells, EXPERIMENT) == []


def test_an_interrupt_keeps_the_complete_pairs() -> None:
    results = iter([run(2), run(1), run(2)])

    def until_interrupted(cell: Cell, half: Half) -> CellResult:
        if (result := next(results, None)) is None:
            raise KeyboardInterrupt
        return result

    trials, is_complete = intervene(
        expand(EXPERIMENT, ("waitress",))[:1], EXPERIMENT, until_interrupted
    )

    assert not is_complete
    assert (trials[0].pairs, len(trials[0].with_limit), trials[0].valid_pairs) == (2, 1, 1)
    assert Trial("waitress", 1.0, None).result().factor is None


def test_whole_cores_have_no_limit_to_lift() -> None:
    two = CpuPlan((1, 2), (0,), False)
    require_liftable(Limits(cpus=1.5), two)
    for limits in (Limits(cpus=2), Limits()):
        with pytest.raises(UsageError, match="no CPU limit"):
            require_liftable(limits, two)


def test_there_are_as_many_pairs_as_runs() -> None:
    assert pairs_of(replace(EXPERIMENT, runs=3)) == 3
