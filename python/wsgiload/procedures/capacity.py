"""A capacity search: the rate of the next trial, until the rate at which the objective is just met
is known well enough or the budget ends. Pure: a generator, so tests and ``make simulate`` run it in
virtual time.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Literal

from wsgiload.statistics.crossing import MIN_TRIALS, Counted, Crossing, crossing_of

Phase = Literal["bracket", "measure"]

# The first trial's share of the saturation throughput.
FIRST_SHARE = 0.7
# Up to 1.5 times the highest rate that met the objective, and down to half of the lowest that
# missed it; at least this far.
_MOST_UP, _MOST_DOWN, _LEAST = 1.5, 0.5, 1.03
# The trials alternate at rates where the share beyond the limit is exp(0.8) times smaller and
# larger than allowed: there, the curve says most of where it crosses.
_DISTANCE = 0.8
_NEAREST, _FARTHEST = 0.005, 0.1


@dataclass(frozen=True, slots=True)
class Plan:
    """The throughput of a closed loop, the range of rates, the relative width of the interval that
    is narrow enough, and the seconds that are left and that a trial takes."""

    saturation_per_s: float
    lowest_per_s: float
    highest_per_s: float
    width: float
    budget_s: float
    trial_s: float


@dataclass(frozen=True, slots=True)
class NextTrial:
    """The next trial and what is known before it."""

    rate_per_s: float
    phase: Phase
    known: Crossing | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """A trial's counts (None: no valid measurement was possible, which ends the search), and how
    long it took with its reruns."""

    counted: Counted | None
    seconds: float


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The trials that count and, if the objective was met in some and missed in others, the rate
    at which it is just met."""

    trials: tuple[Counted, ...] = ()
    crossing: Crossing | None = None
    is_abandoned: bool = False

    @property
    def bracket(self) -> tuple[float | None, float | None]:
        """The nearest measured rates around the crossing: one below it that met the objective, and
        one above it that missed; without a crossing, the highest and the lowest."""
        at = None if self.crossing is None else self.crossing.rate_per_s
        met = [one.rate_per_s for one in self.trials if one.is_met]
        missed = [one.rate_per_s for one in self.trials if not one.is_met]
        below = [rate for rate in met if at is None or rate <= at]
        above = [rate for rate in missed if at is None or rate > at]
        return max(below, default=None), min(above, default=None)


Search = Generator[NextTrial, Outcome, SearchResult]


def rounded(rate_per_s: float, digits: int = 4) -> float:
    """Rounded to this many significant digits. Four are finer than any interval and suitable for
    file names."""
    return float(f"{rate_per_s:.{digits}g}")


def capacity(plan: Plan) -> Search:
    """Approach the limit along a queue's curve from the throughput of the closed loop, then measure
    on both sides of it."""
    trials, known = list[Counted](), None
    left_s, longest_s = plan.budget_s, plan.trial_s
    rate = _inside(FIRST_SHARE * plan.saturation_per_s, plan)
    while longest_s <= left_s:
        outcome = yield NextTrial(rate, "bracket" if known is None else "measure", known)
        if outcome.counted is None:
            return SearchResult(tuple(trials), known, is_abandoned=True)
        left_s -= outcome.seconds
        longest_s = max(plan.trial_s, outcome.seconds)
        trials.append(outcome.counted)
        known = crossing_of(trials, plan.saturation_per_s)
        if known is None:
            if _is_at_end(trials, plan):
                break
            rate = _inside(_approach(trials, plan.saturation_per_s), plan)
            continue
        if len(trials) >= MIN_TRIALS and known.width <= plan.width:
            break
        away = max(_NEAREST, min(_FARTHEST, _DISTANCE / known.slope))
        rate = _inside(known.rate_per_s * (1 + away * (-1) ** len(trials)), plan)
    return SearchResult(tuple(trials), known)


def _inside(rate_per_s: float, plan: Plan) -> float:
    return rounded(min(max(rate_per_s, plan.lowest_per_s), plan.highest_per_s))


def _is_at_end(trials: Sequence[Counted], plan: Plan) -> bool:
    """Whether an end of the range was tried twice: the objective is met, or missed, everywhere."""
    ends = {_inside(0.0, plan), _inside(plan.highest_per_s, plan)}
    return sum(one.rate_per_s in ends for one in trials) >= 2


def _approach(trials: Sequence[Counted], saturation_per_s: float) -> float:
    """The next rate while all trials met the objective or all missed it: response times grow like
    1/(saturation - rate), so the distance from saturation shrinks by the excess."""
    is_met = trials[0].is_met
    nearest = (max if is_met else min)(trials, key=lambda one: one.rate_per_s)
    rate = nearest.rate_per_s
    spare = max(saturation_per_s, rate) - rate
    following = rate + spare * (1 - nearest.excess)
    if is_met and rate >= saturation_per_s:
        return _MOST_UP * rate  # the closed loop had too few users
    if is_met:
        return min(_MOST_UP * rate, max(_LEAST * rate, following))
    return max(_MOST_DOWN * rate, min(rate / _LEAST, following))
