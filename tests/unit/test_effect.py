"""Student's t against its tables, permutation tests against counting by hand, and what they are
for: rare mistakes."""

from __future__ import annotations

import math
import random
from itertools import pairwise, product
from operator import mul
from statistics import fmean

import pytest

from wsgiload.statistics.effect import (
    MOST_ARRANGEMENTS,
    MOST_ROUNDS_COUNTED,
    holm,
    mean_interval,
    paired_effect,
    permutation_p,
    runs_needed,
    sign_flip_p,
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


@pytest.mark.parametrize(
    ("runs", "least"), [(3, 0.25), (4, 0.125), (5, 0.0625), (6, 0.03125), (8, 2 / 256)]
)
def test_the_least_p_of_a_sign_flip_is_two_of_all_arrangements(runs: int, least: float) -> None:
    assert sign_flip_p([0.1 + run / 100 for run in range(runs)]) == least


def test_a_sign_flip_counts_by_hand() -> None:
    """Of 3, 2, -1 the sum is 4; of the eight arrangements 6, 4, -4 and -6 are as far from zero."""
    assert sign_flip_p([3, 2, -1]) == 4 / 8
    assert sign_flip_p([0.0, 0.0]) == 1


def test_counting_by_halves_is_counting_all() -> None:
    draw = random.Random(2)
    for rounds in range(1, 11):
        differences = [
            draw.choice((0.01, 0.02, 0.5)) * draw.choice((1, 1, -1)) for _ in range(rounds)
        ]
        sums = [sum(map(mul, differences, signs)) for signs in product((1, -1), repeat=rounds)]
        far = [abs(total) >= abs(sum(differences)) - 1e-12 for total in sums]
        assert sign_flip_p(differences) == sum(far) / len(far)


def test_a_permutation_of_labels_counts_by_hand() -> None:
    """Four and four that do not overlap: 2 of 70."""
    assert permutation_p([1, 2, 3, 4], [5, 6, 7, 8]) == pytest.approx(2 / 70)
    assert permutation_p([1.0, 1.0], [1.0, 1.0]) == 1


def test_more_arrangements_than_can_be_looked_at_are_drawn_alike_each_time() -> None:
    draw = random.Random(3)
    differences = [draw.gauss(0.02, 0.05) for _ in range(30)]
    assert len(differences) > MOST_ROUNDS_COUNTED
    drawn = sign_flip_p(differences)
    assert drawn == sign_flip_p(differences)
    assert 0 < sign_flip_p([1.0] * 40) < 0.001, "the arrangement that was seen is one of them"
    assert math.comb(30, 15) > MOST_ARRANGEMENTS
    assert permutation_p(range(15), range(100, 115)) < 0.001


# --- several at once


def test_holm_adjusts_the_smallest_most_and_never_changes_the_order() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_runs_are_enough_for_the_pairs_and_not_more() -> None:
    assert [runs_needed(pairs) for pairs in (0, 1, 3, 6, 10, 28)] == [6, 6, 7, 8, 9, 11]
    for pairs in range(1, 200):
        runs = runs_needed(pairs)
        assert holm([2.0 ** (1 - runs)] * pairs)[0] < 0.05
        assert runs == 6 or holm([2.0 ** (2 - runs)] * pairs)[0] >= 0.05
    assert all(
        fewer <= more for fewer, more in pairwise(runs_needed(pairs) for pairs in range(1, 200))
    )


# --- factors


def test_a_factor_stands_inside_its_interval() -> None:
    effect = paired_effect([math.log(factor) for factor in (1.25, 1.31, 1.28, 1.40, 1.33, 1.29)])
    low, high = effect.bounds
    assert low < effect.factor < high
    assert effect.factor == pytest.approx(1.309, abs=1e-3)
    assert effect.interval.excludes_zero() and not effect.interval.lies_within(math.log(1.05))


def test_what_scatters_widely_round_nothing_is_not_the_same() -> None:
    interval = mean_interval([-0.3, 0.3, -0.2, 0.2])
    assert interval.mean == pytest.approx(0)
    assert not interval.excludes_zero() and not interval.lies_within(0.05)
    assert interval.lies_within(0.4)


def test_differences_without_spread_have_no_width() -> None:
    effect = paired_effect([0.0] * 6)
    assert (effect.factor, effect.bounds, effect.p) == (1.0, (1.0, 1.0), 1.0)
    assert effect.interval.lies_within(0.01)
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
