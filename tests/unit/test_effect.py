"""Student's t against its tables, permutation tests against counting by hand, and what they are
for: rare mistakes."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from itertools import combinations, pairwise
from statistics import fmean, stdev

import pytest

from wsgiload.statistics.effect import (
    MAX_EXACT_VALUES,
    SIGNIFICANT,
    deviation_of,
    holm,
    mean_interval,
    paired_effect,
    permutation_p,
    runs_needed,
    t_test_p,
    unpaired_effect,
)
from wsgiload.statistics.student import t_cumulative, t_quantile

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
def test_t_is_that_of_the_tables(probability: float, degrees: int, value: float) -> None:
    assert t_quantile(probability, degrees) == pytest.approx(value, abs=5e-4)
    assert t_quantile(1 - probability, degrees) == pytest.approx(-value, abs=5e-4)


@pytest.mark.parametrize("probability", [0.5, 0.6, 0.9, 0.975, 0.999])
def test_t_is_exact_where_there_is_a_formula(probability: float) -> None:
    assert t_quantile(probability, 1) == pytest.approx(
        math.tan(math.pi * (probability - 0.5)), abs=1e-12, rel=1e-12
    )
    two = (2 * probability - 1) / math.sqrt(2 * probability * (1 - probability))
    assert t_quantile(probability, 2) == pytest.approx(two, abs=1e-12, rel=1e-12)


def test_t_of_many_degrees_is_normal_and_the_inverse_is_one() -> None:
    assert t_quantile(0.975, 10**7) == pytest.approx(1.959964, abs=1e-6)
    for value in (-3.0, -0.1, 0.0, 0.5, 4.0):
        assert t_quantile(t_cumulative(value, 6), 6) == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize(("probability", "degrees"), [(0.0, 5), (1.0, 5), (0.5, 0)])
def test_what_has_no_quantile_is_refused(probability: float, degrees: int) -> None:
    with pytest.raises(ValueError, match="there is no t quantile"):
        t_quantile(probability, degrees)


def test_an_interval_of_the_mean_is_that_of_a_textbook() -> None:
    """Student 1908, the sleep data: mean 1.58, standard error 0.389, t(9) 2.262."""
    gains = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]
    interval = mean_interval(gains)
    assert interval.mean == pytest.approx(1.58)
    assert interval.half_95 == pytest.approx(0.8799, abs=1e-4)
    assert interval.half_90 < interval.half_95


# --- permutations


def test_the_t_test_is_that_of_a_textbook() -> None:
    """Student 1908, the sleep data: t(9) = 4.062, p = 0.00283."""
    gains = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]
    assert t_test_p(gains) == pytest.approx(0.002833, abs=1e-6)
    assert t_test_p([-gain for gain in gains]) == t_test_p(gains)
    assert t_test_p([0.0, 0.0, 0.0]) == 1
    assert t_test_p([0.2, 0.2, 0.2]) == 0


# --- rare mistakes, and enough power (servers' logarithms of p99 by round; paired deviation 0.2)

DEVIATION = 0.2 / math.sqrt(2)


def rounds_of(draw: random.Random, servers: int, rounds: int) -> list[list[float]]:
    """By server, the logarithm of its p99 in each round; all servers are alike."""
    return [[draw.gauss(0, DEVIATION) for _ in range(rounds)] for _ in range(servers)]


def differing(found: list[list[float]]) -> set[tuple[int, int]]:
    """The pairs that are called different."""
    pairs = list(combinations(range(len(found)), 2))
    differences = [
        [one - other for one, other in zip(found[first], found[second], strict=True)]
        for first, second in pairs
    ]
    adjusted = holm([t_test_p(values) for values in differences])
    return {pair for pair, p in zip(pairs, adjusted, strict=True) if p < SIGNIFICANT}


def test_no_false_difference_among_eight_servers_in_95_experiments_of_100() -> None:
    draw, experiments = random.Random(11), 600
    false = sum(bool(differing(rounds_of(draw, 8, 11))) for _ in range(experiments))
    # Two standard errors above 5 %.
    assert false / experiments <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / experiments)


def power(rounds: int, spoil: Callable[[list[float]], list[float]] = list) -> float:
    """How often a server that is slower by 1.3 is told from another."""
    draw, found, experiments = random.Random(12), 0, 2_000
    for _ in range(experiments):
        differences = [draw.gauss(math.log(1.3), 0.2) for _ in range(rounds)]
        found += t_test_p(spoil(differences)) < SIGNIFICANT
    return found / experiments


def test_six_rounds_find_a_difference_of_a_third_in_seven_experiments_of_ten() -> None:
    assert power(6) >= 0.70


def test_a_lost_round_costs_at_most_15_points_of_power() -> None:
    assert power(6, lambda differences: differences[:-1]) >= power(6) - 0.15


def test_spoiled_rounds_that_the_host_check_sees_and_repeats_cost_nothing() -> None:
    """One round in ten is spoiled eightfold. Seen, it is measured again; unseen, it costs most of
    the power, which is why trials are repeated by what the host did."""
    draw = random.Random(13)

    def spoiled(differences: list[float]) -> list[float]:
        return [one + math.log(8) * (draw.random() < 0.1) for one in differences]

    def repeated(differences: list[float]) -> list[float]:
        is_spoiled = [draw.random() < 0.1 for _ in differences]
        return [
            draw.gauss(math.log(1.3), 0.2) if again else one
            for one, again in zip(differences, is_spoiled, strict=True)
        ]

    assert power(6, repeated) >= power(6) - 0.05
    assert power(6, spoiled) < power(6) - 0.05


def test_a_permutation_of_labels_counts_by_hand() -> None:
    """Four and four that do not overlap: 2 of 70."""
    assert permutation_p([1, 2, 3, 4], [5, 6, 7, 8]) == pytest.approx(2 / 70)
    assert permutation_p([1.0, 1.0], [1.0, 1.0]) == 1


@pytest.mark.parametrize(("first_size", "second_size"), [(1, 4), (4, 5), (9, 4), (8, 8)])
def test_a_permutation_test_counts_every_division(first_size: int, second_size: int) -> None:
    source = random.Random(first_size)
    first = [source.gauss(0.5, 1) for _ in range(first_size)]
    second = [source.gauss(0, 1) for _ in range(second_size)]
    values = [*first, *second]
    middle, observed = fmean(values), fmean(first)

    sums = [abs(fmean(one) - middle) for one in combinations(values, first_size)]
    expected = sum(one >= abs(observed - middle) - 1e-12 for one in sums) / len(sums)
    assert permutation_p(first, second) == pytest.approx(expected)


def test_the_divisions_of_many_values_are_drawn_with_a_fixed_seed() -> None:
    size = MAX_EXACT_VALUES // 2 + 1
    first = [0.1 * value for value in range(size)]
    second = [value + 0.3 for value in first]
    p = permutation_p(first, second)
    assert p == permutation_p(first, second)
    exact = permutation_p(first[:-1], second[:-1])
    assert p == pytest.approx(exact, rel=0.5)
    separate = permutation_p(range(size), range(100, 100 + size))
    assert 0 < separate < 0.001, "the observed division counts"


# --- several at once


def test_holm_adjusts_the_smallest_most_and_never_changes_the_order() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_more_pairs_need_more_runs() -> None:
    assert [runs_needed(pairs) for pairs in (0, 1, 3, 6, 10, 28)] == [6, 6, 7, 8, 9, 11]
    assert [runs_needed(1, deviation) for deviation in (0.0, 0.1, 0.4, 9.0)] == [6, 6, 12, 100]
    assert all(
        fewer <= more for fewer, more in pairwise(runs_needed(pairs) for pairs in range(1, 200))
    )


def test_the_runs_of_eight_servers_find_a_difference_of_1_3_as_often_as_not() -> None:
    draw, found, experiments = random.Random(14), 0, 400
    for _ in range(experiments):
        measured = rounds_of(draw, 8, runs_needed(28))
        measured[0] = [value + math.log(1.3) for value in measured[0]]
        found += (0, 1) in differing(measured)
    assert found / experiments >= 0.45


# --- factors


def test_a_factor_stands_inside_its_interval() -> None:
    effect = paired_effect([math.log(factor) for factor in (1.25, 1.31, 1.28, 1.40, 1.33, 1.29)])
    low, high = effect.bounds
    assert low < effect.factor < high
    assert effect.factor == pytest.approx(1.309, abs=1e-3)
    assert effect.interval.excludes_zero() and not effect.interval.lies_within(math.log(1.05))


def test_the_deviation_is_known_again_from_the_interval() -> None:
    values = [0.21, 0.35, 0.1, 0.3, 0.27, 0.4]
    effect = paired_effect(values)
    assert deviation_of(effect.bounds, 6) == pytest.approx(stdev(values))


def test_what_scatters_widely_round_nothing_is_not_the_same() -> None:
    interval = mean_interval([-0.3, 0.3, -0.2, 0.2])
    assert interval.mean == pytest.approx(0)
    assert not interval.excludes_zero() and not interval.lies_within(0.05)
    assert interval.lies_within(0.4)


def test_differences_without_spread_have_no_width() -> None:
    effect = paired_effect([0.0] * 6)
    assert (effect.factor, effect.bounds, effect.p) == (1.0, (1.0, 1.0), 1.0)
    assert effect.interval.margin == 0 and effect.interval.lies_within(0.01)
    assert unpaired_effect([1.0] * 4, [1.0] * 4).bounds == (1.0, 1.0)


def test_welchs_interval_covers_where_the_spreads_differ() -> None:
    """1,000 pairs of samples whose deviations are 1 and 3: the true difference is covered in 95 %,
    to within 2 %."""
    draw, covered = random.Random(5), 0
    for _ in range(1000):
        interval = unpaired_effect(
            [draw.gauss(1, 1) for _ in range(5)], [draw.gauss(0, 3) for _ in range(5)]
        ).interval
        covered += abs(interval.mean - 1) <= interval.half_95
    assert 0.93 <= covered / 1000 <= 0.98


def test_a_t_interval_over_runs_covers_and_one_that_knows_only_requests_does_not() -> None:
    """Six runs, each off by 10 %, each measured to 3 %: the method's table gives 0.95 and about
    0.36."""
    draw, by_runs, by_requests = random.Random(6), 0, 0
    for _ in range(2000):
        runs = [draw.gauss(0, 0.10) + draw.gauss(0, 0.03) for _ in range(6)]
        by_runs += abs(mean_interval(runs).mean) <= mean_interval(runs).half_95
        by_requests += abs(fmean(runs)) <= 1.96 * 0.03 / math.sqrt(6)
    assert by_runs / 2000 == pytest.approx(0.95, abs=0.015)
    assert by_requests / 2000 < 0.5
