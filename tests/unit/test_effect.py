"""Student's t against published tables, and the error rates and power of the tests in
simulations."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from itertools import combinations, pairwise
from statistics import fmean, stdev

import pytest

from wsgiload.statistics.effect import (
    SIGNIFICANT,
    deviation_of,
    holm,
    mean_interval,
    paired_effect,
    runs_needed,
    t_cumulative,
    t_quantile,
    t_test_p,
    unpaired_effect,
)

# Fisher and Yates, Statistical Tables, table III: two-sided 5 % is 0.975 here.
TABLE = [
    (0.975, 1, 12.706),
    (0.975, 3, 3.182),
    (0.975, 5, 2.571),
    (0.975, 9, 2.262),
    (0.975, 29, 2.045),
    (0.975, 120, 1.980),
    (0.95, 5, 2.015),
    (0.9, 7, 1.415),
    (0.995, 4, 4.604),
    (0.9995, 10, 4.587),
]


@pytest.mark.parametrize(("probability", "degrees", "value"), TABLE)
def test_t_quantiles_match_published_tables(probability: float, degrees: int, value: float) -> None:
    assert t_quantile(probability, degrees) == pytest.approx(value, abs=5e-4)
    assert t_quantile(1 - probability, degrees) == pytest.approx(-value, abs=5e-4)


@pytest.mark.parametrize("probability", [0.5, 0.6, 0.9, 0.975, 0.999])
def test_t_quantiles_match_their_closed_forms(probability: float) -> None:
    assert t_quantile(probability, 1) == pytest.approx(
        math.tan(math.pi * (probability - 0.5)), abs=1e-12, rel=1e-12
    )
    of_two_degrees = (2 * probability - 1) / math.sqrt(2 * probability * (1 - probability))
    assert t_quantile(probability, 2) == pytest.approx(of_two_degrees, abs=1e-12, rel=1e-12)


def test_t_of_many_degrees_is_normal_and_its_quantiles_invert_it() -> None:
    assert t_quantile(0.975, 10**7) == pytest.approx(1.959964, abs=1e-6)
    for value in (-3.0, -0.1, 0.0, 0.5, 4.0):
        assert t_quantile(t_cumulative(value, 6), 6) == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize(("probability", "degrees"), [(0.0, 5), (1.0, 5), (0.5, 0)])
def test_a_t_quantile_outside_its_domain_is_an_error(probability: float, degrees: int) -> None:
    with pytest.raises(ValueError, match="there is no t quantile"):
        t_quantile(probability, degrees)


def test_the_interval_of_a_mean_matches_students_example() -> None:
    """Student 1908, the sleep data: mean 1.58, standard error 0.389, t(9) 2.262."""
    gains = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]
    interval = mean_interval(gains)
    assert interval.mean == pytest.approx(1.58)
    assert interval.half_95 == pytest.approx(0.8799, abs=1e-4)
    assert interval.half_90 < interval.half_95


# --- tests of one difference


def test_the_t_test_matches_students_example() -> None:
    """Student 1908, the sleep data: t(9) = 4.062, p = 0.00283."""
    gains = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]
    assert t_test_p(gains) == pytest.approx(0.002833, abs=1e-6)
    assert t_test_p([-gain for gain in gains]) == t_test_p(gains)
    assert t_test_p([0.0, 0.0, 0.0]) == 1
    assert t_test_p([0.2, 0.2, 0.2]) == 0


# --- error rates and power (simulated log p99 by server and round; paired deviation 0.2)

DEVIATION = 0.2 / math.sqrt(2)


def rounds_of(draw: random.Random, servers: int, rounds: int) -> list[list[float]]:
    """For each server, the log p99 of each round; all servers are equal."""
    return [[draw.gauss(0, DEVIATION) for _ in range(rounds)] for _ in range(servers)]


def different_pairs(logs: list[list[float]]) -> set[tuple[int, int]]:
    """The pairs with a significant difference."""
    pairs = list(combinations(range(len(logs)), 2))
    differences = [
        [
            of_first - of_second
            for of_first, of_second in zip(logs[first], logs[second], strict=True)
        ]
        for first, second in pairs
    ]
    adjusted = holm([t_test_p(values) for values in differences])
    return {pair for pair, p in zip(pairs, adjusted, strict=True) if p < SIGNIFICANT}


def test_eight_equal_servers_differ_in_at_most_5_percent_of_experiments() -> None:
    draw, experiments = random.Random(11), 600
    false_positives = sum(bool(different_pairs(rounds_of(draw, 8, 11))) for _ in range(experiments))
    # 5 % plus two standard errors.
    assert false_positives / experiments <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / experiments)


def power(rounds: int, transform: Callable[[list[float]], list[float]] = list) -> float:
    """The share of experiments that detect a server slower by a factor of 1.3."""
    draw, detected, experiments = random.Random(12), 0, 2_000
    for _ in range(experiments):
        differences = [draw.gauss(math.log(1.3), 0.2) for _ in range(rounds)]
        detected += t_test_p(transform(differences)) < SIGNIFICANT
    return detected / experiments


def test_six_rounds_detect_a_factor_of_1_3_with_a_power_of_70_percent() -> None:
    assert power(6) >= 0.70


def test_a_lost_round_costs_at_most_15_percentage_points_of_power() -> None:
    assert power(6, lambda differences: differences[:-1]) >= power(6) - 0.15


def test_repeating_disturbed_rounds_preserves_the_power() -> None:
    """One round in ten is slower by a factor of 8. Unless these rounds are detected and repeated,
    most of the power is lost."""
    draw = random.Random(13)

    def disturbed(differences: list[float]) -> list[float]:
        return [value + math.log(8) * (draw.random() < 0.1) for value in differences]

    def repeated(differences: list[float]) -> list[float]:
        is_disturbed = [draw.random() < 0.1 for _ in differences]
        return [
            draw.gauss(math.log(1.3), 0.2) if is_repeated else value
            for value, is_repeated in zip(differences, is_disturbed, strict=True)
        ]

    assert power(6, repeated) >= power(6) - 0.05
    assert power(6, disturbed) < power(6) - 0.05


def test_welchs_test_agrees_with_a_calculation_by_hand() -> None:
    """By hand: variances of 2.5 and 10 of five values each. The degrees of freedom are 5.88,
    rounded down."""
    first, second = [1.0, 2.0, 3.0, 4.0, 5.0], [4.0, 6.0, 8.0, 10.0, 12.0]
    effect = unpaired_effect(first, second)
    error = math.sqrt(2.5 / 5 + 10 / 5)
    degrees = (2.5 / 5 + 10 / 5) ** 2 / ((2.5 / 5) ** 2 / 4 + (10 / 5) ** 2 / 4)
    assert int(degrees) == 5
    assert effect.interval.half_95 == pytest.approx(2.571 * error, rel=1e-3)
    assert effect.p == pytest.approx(2 * t_cumulative(-5 / error, 5))


# --- multiple comparisons


def test_holm_adjusts_the_smallest_most_and_never_changes_the_order() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_a_test_with_more_weight_is_adjusted_less() -> None:
    """The weights are shares of the error probability; those of rejected tests pass on."""
    assert holm([0.01, 0.01], [0.9, 0.1]) == pytest.approx([0.01 / 0.9, 0.01 / 0.9])
    assert holm([0.01, 0.02], [0.1, 0.9]) == pytest.approx([0.02 / 0.9, 0.02 / 0.9])
    assert holm([0.001, 0.09], [0.1, 0.9]) == pytest.approx([0.01, 0.09])
    assert holm([0.01, 0.04], [0.5, 0.5]) == holm([0.01, 0.04])


def test_more_pairs_need_more_runs() -> None:
    assert [runs_needed(pairs) for pairs in (0, 1, 3, 6, 10, 28)] == [6, 6, 7, 8, 9, 11]
    assert [runs_needed(1, deviation) for deviation in (0.0, 0.1, 0.4, 9.0)] == [6, 6, 12, 100]
    assert all(
        fewer <= more for fewer, more in pairwise(runs_needed(pairs) for pairs in range(1, 200))
    )


def test_the_runs_needed_by_eight_servers_detect_a_factor_of_1_3_about_half_the_time() -> None:
    draw, detected, experiments = random.Random(14), 0, 400
    for _ in range(experiments):
        measured = rounds_of(draw, 8, runs_needed(28))
        measured[0] = [value + math.log(1.3) for value in measured[0]]
        detected += (0, 1) in different_pairs(measured)
    assert detected / experiments >= 0.45


# --- factors


def test_a_factor_lies_within_its_interval() -> None:
    effect = paired_effect([math.log(factor) for factor in (1.25, 1.31, 1.28, 1.40, 1.33, 1.29)])
    low, high = effect.bounds
    assert low < effect.factor < high
    assert effect.factor == pytest.approx(1.309, abs=1e-3)
    assert effect.interval.excludes_zero() and not effect.interval.lies_within(math.log(1.05))


def test_the_deviation_is_recovered_from_the_interval() -> None:
    values = [0.21, 0.35, 0.1, 0.3, 0.27, 0.4]
    effect = paired_effect(values)
    assert deviation_of(effect.bounds, 6) == pytest.approx(stdev(values))


def test_a_wide_interval_around_zero_is_not_equivalence() -> None:
    interval = mean_interval([-0.3, 0.3, -0.2, 0.2])
    assert interval.mean == pytest.approx(0)
    assert not interval.excludes_zero() and not interval.lies_within(0.05)
    assert interval.lies_within(0.4)


def test_equal_differences_have_an_interval_of_zero_width() -> None:
    effect = paired_effect([0.0] * 6)
    assert (effect.factor, effect.bounds, effect.p) == (1.0, (1.0, 1.0), 1.0)
    assert effect.interval.margin == 0 and effect.interval.lies_within(0.01)
    assert unpaired_effect([1.0] * 4, [1.0] * 4).bounds == (1.0, 1.0)


def test_welchs_interval_covers_despite_unequal_variances() -> None:
    """1,000 pairs of samples with deviations of 1 and 3: the interval covers the true difference in
    95 % of them, within 3 percentage points."""
    draw, covered = random.Random(5), 0
    for _ in range(1000):
        interval = unpaired_effect(
            [draw.gauss(1, 1) for _ in range(5)], [draw.gauss(0, 3) for _ in range(5)]
        ).interval
        covered += abs(interval.mean - 1) <= interval.half_95
    assert 0.93 <= covered / 1000 <= 0.98


def test_an_interval_over_runs_covers_and_one_over_requests_does_not() -> None:
    """Six runs with a deviation of 10 % between runs and 3 % within: the expected coverage is 0.95
    and about 0.36."""
    draw, by_runs, by_requests = random.Random(6), 0, 0
    for _ in range(2000):
        runs = [draw.gauss(0, 0.10) + draw.gauss(0, 0.03) for _ in range(6)]
        by_runs += abs(mean_interval(runs).mean) <= mean_interval(runs).half_95
        by_requests += abs(fmean(runs)) <= 1.96 * 0.03 / math.sqrt(6)
    assert by_runs / 2000 == pytest.approx(0.95, abs=0.015)
    assert by_requests / 2000 < 0.5
