"""How long a race measures, and how often a mean at a limit seems to be below it."""

from __future__ import annotations

import math
import os
import random
from statistics import fmean

import pytest

from wsgiload.experiment.slices import slice_ns
from wsgiload.loads.options import Level
from wsgiload.procedures.race import FIELD
from wsgiload.statistics.effect import MIN_RUNS
from wsgiload.statistics.sequential import mean_at_any_analysis

EXPERIMENTS = int(os.environ.get("WSGILOAD_RACES", "40"))
MAX_ERROR_RATE = 0.05 + 2 * math.sqrt(0.05 * 0.95 / EXPERIMENTS)
# Standard deviation of log p99 between launches.
DEVIATION = 0.2 / math.sqrt(2)


@pytest.mark.parametrize(
    ("rate", "slo", "seconds"),
    [
        (100.0, (), 11.0),
        (5000.0, (), 1.0),
        (1000.0, ("p95<10ms", "error_rate<=0.1%"), 1.1),
        (1000.0, ("p50<10ms", "p99.9<50ms"), 11.0),
    ],
)
def test_a_slice_is_as_long_as_its_highest_quantile_needs(
    rate: float, slo: tuple[str, ...], seconds: float
) -> None:
    assert slice_ns(Level(rate_per_s=rate), slo) == pytest.approx(seconds * 1e9, abs=2)
    assert slice_ns(Level(connections=9), slo) == 1e9


def test_a_setting_at_the_limit_meets_it_in_at_most_5_percent_of_races() -> None:
    """Any of four settings, with an interim analysis after every block."""
    max_blocks = 11
    analyses = (max_blocks - MIN_RUNS + 1) * FIELD

    def meets_limit(draw: random.Random) -> bool:
        values = [draw.gauss(0, DEVIATION) for _ in range(max_blocks)]
        intervals = [
            mean_at_any_analysis(values[:count], analyses) for count in range(1, max_blocks + 1)
        ]
        return any(
            interval is not None and interval.mean + interval.half_90 < 0 for interval in intervals
        )

    wrong = [
        any(meets_limit(random.Random(100 * seed + index)) for index in range(FIELD))
        for seed in range(EXPERIMENTS)
    ]

    assert fmean(wrong) <= MAX_ERROR_RATE
