"""The search for the highest rate that meets an objective. Pure: a generator that yields the next
trial and receives its outcome, so tests can simulate the server.

Loads are classified as in RFC 9971 (MLRsearch); "loss" means that a trial missed the objective.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

Phase = Literal["bracket", "bisect", "confirm"]
Class = Literal["lower", "upper"]

BRACKET_FACTOR = 2.0
# Five of six confirmation trials must meet the objective.
CONFIRMED_SHARE = 5 / 6
STEPS_DOWN = 3


@dataclass(frozen=True, slots=True)
class Goal:
    """The precision of a search. ``width`` is relative; ``exceed_ratio`` is the share of trials
    that may miss; the search begins at ``first_share`` of the guess."""

    width: float = 0.02
    trials: int = 6
    exceed_ratio: float = 0.5
    confirmations: int = 6
    lowest_per_s: float = 0.1
    highest_per_s: float = 1_000_000.0
    first_share: float = 0.1


@dataclass(frozen=True, slots=True)
class NextTrial:
    """The next trial; ``number`` counts the trials at this load from 1."""

    rate_per_s: float
    number: int
    phase: Phase


@dataclass(frozen=True, slots=True)
class SearchTrial:
    """A finished trial, and whether it met the objective."""

    rate_per_s: float
    passed: bool
    phase: Phase


@dataclass(frozen=True, slots=True)
class Confirmation:
    """New trials at one rate."""

    rate_per_s: float
    passed: int
    of: int

    @property
    def holds(self) -> bool:
        """Whether enough of them met the objective."""
        return self.passed >= needed(self.of)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a search. A bound is None if no load has this class."""

    lower_per_s: float | None
    upper_per_s: float | None
    strict_per_s: float | None
    trials: tuple[SearchTrial, ...]
    confirmations: tuple[Confirmation, ...]
    is_abandoned: bool = False

    @property
    def rate_per_s(self) -> float | None:
        """The capacity: the confirmed rate, or the lower bound if no confirmation was requested."""
        if self.is_abandoned:
            return None
        if not self.confirmations:
            return self.lower_per_s
        last = self.confirmations[-1]
        return last.rate_per_s if last.holds else None


# Whether the trial met the objective; None if no trial was conclusive, which ends the search.
TrialOutcome = bool | None
Search = Generator[NextTrial, TrialOutcome, SearchResult]


class _Abandoned(Exception):
    """No conclusive trial was possible."""


def needed(runs: int) -> int:
    """How many of ``runs`` trials must meet the objective: 5 of 6."""
    return math.ceil(runs * CONFIRMED_SHARE - 1e-9)


def classify(passed: int, failed: int, goal: Goal) -> Class | None:
    """The class of a load; None while further trials could still change it."""
    allowed = goal.exceed_ratio * goal.trials
    if failed > allowed:
        return "upper"
    if goal.trials - passed <= allowed:
        return "lower"
    return None


@dataclass(slots=True)
class Loads:
    """The trials of each load so far."""

    goal: Goal
    outcomes: dict[float, list[bool]] = field(default_factory=dict)
    # Whether the remaining time only suffices for a confirmation.
    is_time_up: Callable[[], bool] = lambda: False

    def class_of(self, rate_per_s: float) -> Class | None:
        """The class of a load; None while it is uncertain."""
        outcomes = self.outcomes.get(rate_per_s, [])
        return classify(outcomes.count(True), outcomes.count(False), self.goal)

    def leaning(self, rate_per_s: float) -> Class:
        """The class of a load; while it is uncertain, the class of most of its trials."""
        outcomes = self.outcomes[rate_per_s]
        return self.class_of(rate_per_s) or (
            "lower" if outcomes.count(True) > outcomes.count(False) else "upper"
        )

    def bounds(self) -> tuple[float | None, float | None]:
        """The relevant bounds: the smallest load that misses, and the largest load below it that
        does not.

        A load above one that misses is no lower bound, even if its trials passed (an inversion in
        RFC 9971).
        """
        return _relevant({rate: self.leaning(rate) for rate in self.outcomes})

    def strict_lower(self) -> float | None:
        """The largest load without a missed trial, below the smallest load with one."""
        return _relevant(
            {
                rate: "lower" if all(outcomes) else "upper"
                for rate, outcomes in self.outcomes.items()
            }
        )[0]


def _relevant(classes: Mapping[float, Class]) -> tuple[float | None, float | None]:
    upper = min(
        (rate for rate, load_class in classes.items() if load_class == "upper"), default=None
    )
    below = [
        rate
        for rate, load_class in classes.items()
        if load_class == "lower" and (upper is None or rate < upper)
    ]
    return max(below, default=None), upper


def rounded(rate_per_s: float, digits: int = 4) -> float:
    """Rounded to this many significant digits. Four are finer than any width and suitable for file
    names."""
    return float(f"{rate_per_s:.{digits}g}")


def search(
    guess_per_s: float, goal: Goal, is_time_up: Callable[[], bool] = lambda: False
) -> Search:
    """Bracket upwards from a share of the guess, bisect in the logarithm of the rate, and confirm
    with new trials. When time is up, the current lower bound is confirmed."""
    # Without rounded ends, the search might never reach them.
    goal = replace(
        goal, lowest_per_s=rounded(goal.lowest_per_s), highest_per_s=rounded(goal.highest_per_s)
    )
    loads, trials = Loads(goal, is_time_up=is_time_up), list[SearchTrial]()
    confirmations, is_abandoned = list[Confirmation](), False
    try:
        yield from _bracket(loads, trials, guess_per_s)
        yield from _bisect(loads, trials)
        lower, _ = loads.bounds()
        if lower is not None and goal.confirmations:
            yield from _confirm(loads, trials, lower, confirmations)
    except _Abandoned:
        is_abandoned = True
    lower, upper = loads.bounds()
    return SearchResult(
        lower, upper, loads.strict_lower(), tuple(trials), tuple(confirmations), is_abandoned
    )


def _try(
    loads: Loads, trials: list[SearchTrial], rate_per_s: float, phase: Phase
) -> Generator[NextTrial, TrialOutcome, bool]:
    number = sum(trial.rate_per_s == rate_per_s for trial in trials) + 1
    passed = yield NextTrial(rate_per_s, number, phase)
    if passed is None:
        raise _Abandoned
    trials.append(SearchTrial(rate_per_s, passed, phase))
    if phase != "confirm":
        loads.outcomes.setdefault(rate_per_s, []).append(passed)
    return passed


def _settle(
    loads: Loads, trials: list[SearchTrial], rate_per_s: float, phase: Phase
) -> Generator[NextTrial, TrialOutcome, None]:
    """Run trials at one load until its class is certain; when time is up, one is enough."""
    while loads.class_of(rate_per_s) is None:
        if loads.is_time_up() and rate_per_s in loads.outcomes:
            return
        yield from _try(loads, trials, rate_per_s, phase)


def _bracket(
    loads: Loads, trials: list[SearchTrial], guess_per_s: float
) -> Generator[NextTrial, TrialOutcome, None]:
    """Go up until a load misses, then down until one does not.

    One passed trial is enough to go on. The class of a load is settled when it becomes the lower
    bound.
    """
    goal = loads.goal
    rate = rounded(min(max(guess_per_s * goal.first_share, goal.lowest_per_s), goal.highest_per_s))
    while True:
        if not (yield from _try(loads, trials, rate, "bracket")):
            yield from _settle(loads, trials, rate, "bracket")
        if loads.leaning(rate) == "upper" or rate >= goal.highest_per_s or loads.is_time_up():
            break
        rate = rounded(min(rate * BRACKET_FACTOR, goal.highest_per_s))
    while loads.bounds()[0] is None and rate > goal.lowest_per_s and not loads.is_time_up():
        rate = rounded(max(min(loads.outcomes) / BRACKET_FACTOR, goal.lowest_per_s))
        yield from _settle(loads, trials, rate, "bracket")


def _bisect(loads: Loads, trials: list[SearchTrial]) -> Generator[NextTrial, TrialOutcome, None]:
    while True:
        lower, upper = loads.bounds()
        if lower is None or loads.is_time_up():
            return
        middle = None if upper is None else _middle(lower, upper, loads.goal.width)
        if middle is not None:
            yield from _settle(loads, trials, middle, "bisect")
        elif loads.class_of(lower) is None:
            yield from _settle(loads, trials, lower, "bisect")
        else:
            return


def _middle(lower: float, upper: float, width: float) -> float | None:
    """The geometric mean; None if the bounds are close enough or no rounded rate lies between
    them."""
    middle = rounded(math.sqrt(lower * upper))
    return middle if upper / lower > 1 + width and lower < middle < upper else None


def _confirm(
    loads: Loads, trials: list[SearchTrial], lower: float, confirmations: list[Confirmation]
) -> Generator[NextTrial, TrialOutcome, None]:
    """Run new trials at the lower bound, which was selected because its trials passed. If they
    miss, go down by one width."""
    goal, rate = loads.goal, lower
    for step in range(1 + STEPS_DOWN):
        if step and loads.is_time_up():
            return
        outcomes = list[bool]()
        while len(outcomes) < goal.confirmations and _is_open(outcomes, goal.confirmations):
            outcomes.append((yield from _try(loads, trials, rate, "confirm")))
        confirmations.append(Confirmation(rate, outcomes.count(True), goal.confirmations))
        if confirmations[-1].holds:
            return
        rate = rounded(rate / (1 + goal.width))


def _is_open(outcomes: Sequence[bool], runs: int) -> bool:
    return outcomes.count(False) <= runs - needed(runs)
