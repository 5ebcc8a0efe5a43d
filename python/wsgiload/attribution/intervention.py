"""The effect of lifting a limit, from pairs of runs with and without it. Pure.

Both runs of a pair have the same arrivals and are made in random order; arrivals differ between
pairs. Only interventions support causal statements, and only about the limit that was lifted.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Literal

from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.over_cells import InterventionResult
from wsgiload.statistics.effect import t_quantile

Half = Literal["limited", "lifted"]
# One run with the limit and one without.
Runs = tuple[CellResult, CellResult]

MIN_PAIRS = 4
USUAL_PAIRS = 6
# A quantile needs ten requests beyond it. The median is compared if there are too few for the
# others.
QUANTILES = (0.99, 0.9, 0.5)
MIN_BEYOND = 10


@dataclass(slots=True)
class Pair:
    """Two runs of one cell, one with the limit and one without."""

    first: Half
    limited: CellResult | None = None
    lifted: CellResult | None = None


@dataclass(slots=True)
class Trial:
    """One server at one load level, with its pairs so far."""

    server: str
    rate: float | None
    connections: int | None
    pairs: list[Pair] = field(default_factory=list)

    def result(self) -> InterventionResult:
        """An entry of ``interventions`` in summary.json."""
        effect = effect_of(self.pairs)
        complete = _complete(self.pairs)
        return InterventionResult(
            limit="cpu",
            server=self.server,
            rate=self.rate,
            connections=self.connections,
            pairs=len(self.pairs),
            valid_pairs=effect.pairs if effect is not None else 0,
            quantile=effect.quantile if effect is not None else None,
            factor=effect.factor if effect is not None else None,
            low=effect.low if effect is not None else None,
            high=effect.high if effect is not None else None,
            sentences=tuple(sentences(self.pairs, effect)),
            with_limit=tuple(limited for limited, _ in complete),
            without_limit=tuple(lifted for _, lifted in complete),
        )


@dataclass(frozen=True, slots=True)
class Effect:
    """The factor by which a quantile changed, with its 95 % bounds, which are None with fewer than
    four pairs."""

    quantile: float
    factor: float
    low: float | None
    high: float | None
    pairs: int


def first_halves(pairs: int, seed: int) -> list[Half]:
    """The first run of each pair: each half is first equally often, in random order."""
    halves: list[Half] = ["limited", "lifted"]
    orders = [halves[index % 2] for index in range(pairs)]
    random.Random(seed).shuffle(orders)
    return orders


def effect_of(pairs: Sequence[Pair]) -> Effect | None:
    """Student's t interval of the logarithm of the ratio within pairs; None if no pair of valid
    runs has both quantiles."""
    valid = _valid(pairs)
    quantile = _quantile(valid)
    changes = [
        change
        for limited, lifted in valid
        if (change := _change(limited, lifted, quantile)) is not None
    ]
    if not changes:
        return None
    mean = fmean(changes)
    if len(changes) < MIN_PAIRS:
        return Effect(quantile, math.exp(mean), None, None, len(changes))
    half = t_quantile(0.975, len(changes) - 1) * stdev(changes) / math.sqrt(len(changes))
    return Effect(
        quantile, math.exp(mean), math.exp(mean - half), math.exp(mean + half), len(changes)
    )


def _complete(pairs: Sequence[Pair]) -> list[Runs]:
    """The pairs with both runs."""
    return [
        (pair.limited, pair.lifted)
        for pair in pairs
        if pair.limited is not None and pair.lifted is not None
    ]


def _valid(pairs: Sequence[Pair]) -> list[Runs]:
    """The pairs in which neither run is invalid, because the time of an invalid run may have
    another cause."""
    return [
        (limited, lifted)
        for limited, lifted in _complete(pairs)
        if _is_usable(limited) and _is_usable(lifted)
    ]


def _is_usable(run: CellResult) -> bool:
    return run.verdict is not None and run.verdict.status != "invalid"


def _quantile(pairs: Sequence[Runs]) -> float:
    """The highest quantile for which all runs have enough requests."""
    counts = [_scheduled(run) for pair in pairs for run in pair]
    min_scheduled = min(counts, default=0)
    return next(
        (one for one in QUANTILES if min_scheduled * (1 - one) >= MIN_BEYOND - 1e-9), QUANTILES[-1]
    )


def _scheduled(run: CellResult) -> int:
    return run.outcomes.scheduled if run.outcomes is not None else 0


def _change(limited: CellResult, lifted: CellResult, quantile: float) -> float | None:
    before, after = _upper_ns(limited, quantile), _upper_ns(lifted, quantile)
    return math.log(after / before) if before and after else None


def _upper_ns(run: CellResult, quantile: float) -> float | None:
    """The quantile over all scheduled requests; None if it is unknown or not finite."""
    bounds = (run.offered_quantiles_ns or {}).get(f"{quantile:g}")
    return None if bounds is None else bounds.high


def sentences(pairs: Sequence[Pair], effect: Effect | None) -> list[str]:
    """The effect of lifting the limit, and the throttling that disappeared with it."""
    if effect is None:
        return [
            "The effect of lifting the CPU limit is unknown: in no pair of runs are both quantiles "
            "valid and finite."
        ]
    change = (
        f"Lifting the CPU limit changed p{effect.quantile * 100:g} by a factor of "
        f"{_number(effect.factor)}"
    )
    if effect.low is None or effect.high is None:
        plural = "pair" if effect.pairs == 1 else "pairs"
        change += f" in {effect.pairs} {plural} of runs (too few for a confidence interval)."
    else:
        change += (
            f" [{_number(effect.low)}, {_number(effect.high)}] in {effect.pairs} pairs of runs."
        )
    return [change, *_disappearances(_valid(pairs))]


def _disappearances(pairs: Sequence[Runs]) -> list[str]:
    with_limit = [_is_throttled(limited) for limited, _ in pairs]
    without = [_is_throttled(lifted) for _, lifted in pairs]
    if not any(with_limit) or any(without):
        return []
    shares = [share for limited, _ in pairs if (share := _throttled_share(limited)) is not None]
    affected = (
        "all requests"
        if shares and min(shares) == 1
        else f"at least {100 * min(shares, default=0):.0f} % of requests"
    )
    overlap = f" ({affected} overlapped a throttled period)" if shares else ""
    runs = f"{sum(with_limit)} of {len(pairs)} runs with the CPU limit"
    return [f"Throttling occurred in {runs}{overlap} and in none without it."]


def _is_throttled(run: CellResult) -> bool:
    fingerprints = run.attribution.fingerprints if run.attribution is not None else ()
    return any(one.name == "throttling" for one in fingerprints)


def _throttled_share(run: CellResult) -> float | None:
    exposures = run.attribution.exposures if run.attribution is not None else ()
    shares = [one.all.value for one in exposures if one.event == "throttled"]
    return shares[0] if shares else None


def _number(factor: float) -> str:
    return f"{factor:.2f}" if factor < 9.95 else f"{factor:.0f}"
