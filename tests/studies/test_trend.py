"""The trend is independent of differences between subjects and between repetitions."""

from __future__ import annotations

import random

import pytest

from studies.trend import Point, complete_table, trend


def table(slope: float, noise: float, seed: int) -> list[list[Point]]:
    """Eight subjects in four repetitions, each in a different random order."""
    draw = random.Random(seed)
    subjects = [draw.gauss(0, 3) for _ in range(8)]
    rows: list[list[Point]] = [[] for _ in subjects]

    for shift in (0.0, 1.0, -2.0, 5.0):
        places = draw.sample(range(8), 8)
        for subject, place in enumerate(places):
            value = subjects[subject] + shift + slope * place + draw.gauss(0, noise)
            rows[subject].append((float(place), value))

    return rows


def test_without_noise_the_slope_is_exact() -> None:
    result = trend(table(0.25, 0.0, seed=1))
    assert result is not None
    assert result.mean == pytest.approx(0.25)
    assert result.half_95 == pytest.approx(0, abs=1e-9)


def test_the_slope_agrees_with_a_calculation_by_hand() -> None:
    # Two subjects in three repetitions; centred, the places are ±1/2, ±1/2 and ∓1.
    rows = [[(0.0, 0.0), (0.0, 0.0), (3.0, 3.0)], [(0.0, 0.0), (0.0, 0.0), (0.0, 1.0)]]
    result = trend(rows)
    assert result is not None
    # Places: row means 1 and 0, column means 0, 0, 1.5; values: 1 and 1/3, 0, 0, 2.
    assert result.mean == pytest.approx(2 / 3)


def test_the_interval_covers_the_slope_in_about_95_percent_of_cases() -> None:
    covered = 0
    for seed in range(400):
        result = trend(table(0.1, 0.5, seed))
        assert result is not None
        covered += abs(result.mean - 0.1) <= result.half_95
    # A binomial variable (n = 400, p = 0.95) is outside this range once in a thousand times.
    assert 365 <= covered <= 394


def test_the_same_order_in_every_repetition_gives_no_trend() -> None:
    rows = [[(float(place), 1.0)] * 4 for place in range(5)]
    assert trend(rows) is None
    assert trend([[(0.0, 1.0), (1.0, 2.0)], [(1.0, 1.0), (0.0, 2.0)]]) is None


def test_only_subjects_of_every_repetition_are_in_the_table() -> None:
    points = {("a", 1): (0.0, 1.0), ("a", 2): (1.0, 2.0), ("b", 1): (1.0, 5.0)}
    assert complete_table(points) == [[(0.0, 1.0), (1.0, 2.0)]]
    assert complete_table({}) == []
