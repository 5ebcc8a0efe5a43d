"""The short trials that select the configurations that may meet an objective."""

from __future__ import annotations

import math
import os
import random
from statistics import fmean

from wsgiload.analysis.races import Stages
from wsgiload.experiment.qualifying import FIELD, qualifying_of
from wsgiload.loads.options import Level, LoadSettings
from wsgiload.statistics.sequential import mean_at_any_analysis
from wsgiload.units import NS_PER_S

EXPERIMENTS = int(os.environ.get("WSGILOAD_RACES", "40"))
MAX_ERROR_RATE = 0.05 + 2 * math.sqrt(0.05 * 0.95 / EXPERIMENTS)
# Standard deviation of log p99 in a full trial of 10 s (0.2 for a paired difference).
DEVIATION = 0.2 / math.sqrt(2)
LOAD = LoadSettings(duration_ns=10 * NS_PER_S, warmup=2.0, cooldown=1.0)


def test_each_setting_has_one_short_trial_longer_at_low_rates() -> None:
    stage = qualifying_of(LOAD, [Level(rate_per_s=100.0)])
    assert (stage.rounds, stage.field) == (1, FIELD)
    assert stage.load.duration_ns == 5 * NS_PER_S
    slow = qualifying_of(LOAD, [Level(rate_per_s=1.0)])
    assert slow.load.duration_ns == LOAD.duration_ns


def test_a_setting_at_the_limit_meets_it_in_at_most_5_percent_of_races() -> None:
    """Any of four settings, with an interim analysis after every round."""
    max_rounds = 11
    analyses = Stages(max_rounds).analyses * FIELD

    def meets_limit(draw: random.Random) -> bool:
        values = [draw.gauss(0, DEVIATION) for _ in range(max_rounds)]
        intervals = [
            mean_at_any_analysis(values[:count], analyses) for count in range(1, max_rounds + 1)
        ]
        return any(
            interval is not None and interval.mean + interval.half_90 < 0 for interval in intervals
        )

    wrong = [
        any(meets_limit(random.Random(100 * seed + index)) for index in range(FIELD))
        for seed in range(EXPERIMENTS)
    ]

    assert fmean(wrong) <= MAX_ERROR_RATE
