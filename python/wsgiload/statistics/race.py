"""A race of servers over rounds: dropouts, outcome and conclusions.

Pure: a function of the rounds alone, so stored rounds give the same result. Selection and
conclusion have different rules, both valid after every round:

- *Selection* determines which servers are measured next. A server drops out once "the leader is
  ahead by the planned factor" is ten times as likely as "both are equal"; contenders are tied once
  it is ten times less likely. This is Wald's sequential probability ratio test ("Sequential tests
  of statistical hypotheses", 1945), with bounds widened for an estimated variance as in S.-H. Kim
  and B. L. Nelson, "A fully sequential procedure for indifference-zone selection in simulation",
  ACM TOMACS 11(3), 2001. Dropping out is not evidence of a difference.
- *Conclusions* about which server is slower use ``sequential``. The last two servers run a final.
  They are compared by the rounds since all others dropped out, because the earlier rounds favor the
  servers that were selected by them. A winner needs a significant difference in the final.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from wsgiload.statistics.effect import (
    MIN_RUNS,
    PLANNED_FACTOR,
    SIGNIFICANT,
    Effect,
)
from wsgiload.statistics.sequential import (
    MIN_ROUNDS,
    Lead,
    Round,
    Spread,
    differences,
    lead_of,
    sequential_effect,
    spread_of,
)
from wsgiload.statistics.student import t_quantile

Outcome = Literal["winner", "ties", "undecided", "failed"]
Pair = tuple[str, str]

# The probability of a wrong selection for one pair, by the likelihood ratio.
MISTAKEN = 0.1
# After this many failures, a server is not measured again.
MAX_FAILURES = 2
FINALISTS = 2
# The share of the error probability for the final; the rest is for all pairs over all rounds.
SHARE_OF_FINAL = 0.8
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Rules:
    """The difference that a race is to detect, and its largest number of rounds."""

    max_rounds: int
    factor: float = PLANNED_FACTOR

    @property
    def planned(self) -> float:
        """The logarithm of the lead to be detected."""
        return math.log(self.factor)

    def analyses(self, before: int = 0) -> int:
        """The number of interim analyses of a pair if the first ``before`` rounds do not count."""
        return max(1, self.max_rounds - before - MIN_RUNS + 1)


@dataclass(frozen=True, slots=True)
class Drop:
    """Why a server is not measured again: how far another was ahead; None if it failed."""

    server: str
    after_round: int
    behind: str | None
    factor: float | None
    # Whether it was dropped by the short trials before the race.
    in_qualifying: bool = False


@dataclass(frozen=True, slots=True)
class RaceState:
    """The state of a race after the rounds so far."""

    outcome: Outcome
    # The fastest first.
    contenders: tuple[str, ...]
    dropped: tuple[Drop, ...]
    # All contenders are within this margin of the leader, 0.09 for 9 %; None: unknown.
    margin: float | None = None
    # Rounds until a decision is expected; None: unknown.
    rounds_left: int | None = None

    @property
    def leader(self) -> str | None:
        """The fastest contender."""
        return self.contenders[0] if self.contenders else None

    @property
    def is_decided(self) -> bool:
        """Whether the outcome is final, so that no further rounds are needed."""
        return self.outcome != "undecided"


@dataclass(frozen=True, slots=True)
class RaceEffect:
    """The difference between two servers, with the p value adjusted for all interim analyses and
    pairs."""

    effect: Effect
    p_adjusted: float


@dataclass(frozen=True, slots=True)
class _Field:
    """The remaining contenders, and the number of rounds before only two were left."""

    contenders: tuple[str, ...]
    drops: tuple[Drop, ...]
    before_final: int | None


def judge_race(servers: Sequence[str], rounds: Sequence[Round], rules: Rules) -> RaceState:
    """The state of the race."""
    field = _field(servers, rounds, rules)
    spread = spread_of(servers, rounds)
    if len(field.contenders) < FINALISTS or spread is None:
        return RaceState(_without_rivals(field), field.contenders, field.drops)

    effects = race_effects(servers, rounds, rules)
    winner = _winner(field, effects)
    if winner is not None:
        order = (winner, *(name for name in field.contenders if name != winner))
        return RaceState("winner", order, field.drops)

    leader, *others = field.contenders
    leads = [lead for name in others if (lead := lead_of(leader, name, rounds)) is not None]
    is_tied = len(leads) == len(others) and _are_tied(leads, spread, rules)
    return RaceState(
        "ties" if is_tied else "undecided",
        field.contenders,
        field.drops,
        _margin(field.contenders, effects),
        None if is_tied else _rounds_left(field, leads, len(rounds), spread, rules),
    )


def race_effects(
    servers: Sequence[str], rounds: Sequence[Round], rules: Rules
) -> dict[Pair, RaceEffect | None]:
    """The effect of every pair, in the given order; None if it has too few rounds. For the
    finalists, it is based on the rounds of their final once there are enough."""
    spread = spread_of(servers, rounds)
    effects = pair_effects(
        servers, rounds, rules, 1 - SHARE_OF_FINAL if len(servers) > FINALISTS else 1.0
    )
    if spread is None:
        return effects

    field = _field(servers, rounds, rules)
    if field.before_final and len(field.contenders) == FINALISTS:
        one, other = sorted(field.contenders, key=servers.index)
        fresh = differences(one, other, rounds[field.before_final :])
        final = _adjusted(fresh, spread, rules.analyses(field.before_final), 1 / SHARE_OF_FINAL)
        effects[one, other] = final or effects[one, other]
    return effects


def pair_effects(
    servers: Sequence[str], rounds: Sequence[Round], rules: Rules, share: float = 1.0
) -> dict[Pair, RaceEffect | None]:
    """The effect of every pair over all rounds, using this share of the error probability.
    Bonferroni's bound over pairs and interim analyses holds for any selection rule, and therefore
    also for other figures."""
    spread = spread_of(servers, rounds)
    pairs = list(combinations(servers, 2))
    if spread is None:
        return dict.fromkeys(pairs)

    # Pairs with too few rounds count, too, because the number of rounds depends on the data.
    analyses, weight = rules.analyses(), len(pairs) / share
    return {
        (one, other): _adjusted(differences(one, other, rounds), spread, analyses, weight)
        for one, other in pairs
    }


def _adjusted(
    values: Sequence[float], spread: Spread, analyses: int, weight: float
) -> RaceEffect | None:
    effect = sequential_effect(values, spread, analyses)
    return None if effect is None else RaceEffect(effect, min(1.0, effect.p * weight))


def _field(servers: Sequence[str], rounds: Sequence[Round], rules: Rules) -> _Field:
    """Replays all rounds, so no drop is ever reversed."""
    contenders, drops = list(servers), list[Drop]()
    before_final = 0 if len(contenders) <= FINALISTS else None
    for number in range(1, len(rounds) + 1):
        so_far = rounds[:number]
        drops += _failed(contenders, so_far)
        contenders = _left(contenders, drops)
        spread = spread_of(servers, so_far)
        if spread is not None and len(contenders) > FINALISTS:
            drops += _outrun(contenders, so_far, spread, rules)
            contenders = _left(contenders, drops)
        if before_final is None and len(contenders) <= FINALISTS:
            before_final = number
    return _Field(tuple(_fastest_first(contenders, rounds)), tuple(drops), before_final)


def _failed(contenders: Sequence[str], so_far: Sequence[Round]) -> list[Drop]:
    """The contenders that failed too often and are not tried again."""
    return [
        Drop(name, len(so_far), None, None)
        for name in contenders
        if sum(math.isinf(one.get(name, 0.0)) for one in so_far) >= MAX_FAILURES
    ]


def _outrun(
    contenders: Sequence[str], so_far: Sequence[Round], spread: Spread, rules: Rules
) -> list[Drop]:
    """The contenders that are clearly behind the leader. The leader keeps its next rival, because
    it must be shown to be faster."""
    leader, _, *others = _fastest_first(contenders, so_far)
    drops = []
    for name in others:
        lead = lead_of(leader, name, so_far)
        if lead is None or lead.rounds < MIN_ROUNDS:
            continue
        if _evidence(lead, spread, rules) >= _needed_evidence(spread):
            drops.append(Drop(name, len(so_far), leader, math.exp(lead.mean)))
    return drops


def _evidence(lead: Lead, spread: Spread, rules: Rules) -> float:
    """The log likelihood ratio of the planned lead to no lead."""
    planned = rules.planned
    return planned * (lead.total - lead.rounds * planned / 2) / max(spread.variance, _TINY)


def _needed_evidence(spread: Spread) -> float:
    """The evidence required for a decision; the less is known about the variance, the more is
    required."""
    return spread.degrees / 2 * (math.pow(MISTAKEN, -2 / spread.degrees) - 1)


def _without_rivals(field: _Field) -> Outcome:
    """The outcome with fewer than two contenders. If all others failed, no test is needed."""
    if not field.contenders:
        return "failed"
    return "winner" if len(field.contenders) == 1 and field.drops else "undecided"


def _winner(field: _Field, effects: Mapping[Pair, RaceEffect | None]) -> str | None:
    """The finalist that was shown to be faster."""
    if len(field.contenders) != FINALISTS:
        return None
    pair = next(pair for pair in effects if set(pair) == set(field.contenders))
    effect = effects[pair]
    if effect is None or effect.p_adjusted >= SIGNIFICANT:
        return None
    return pair[0] if effect.effect.interval.mean < 0 else pair[1]


def _are_tied(leads: Sequence[Lead], spread: Spread, rules: Rules) -> bool:
    return all(
        lead.rounds >= MIN_RUNS and _evidence(lead, spread, rules) <= -_needed_evidence(spread)
        for lead in leads
    )


def _margin(order: Sequence[str], effects: Mapping[Pair, RaceEffect | None]) -> float | None:
    """The largest possible difference between the leader and another contender, according to the
    intervals."""
    pairs = [(order[0], name) for name in order[1:]]
    leader_effects = [effects.get(pair, effects.get(pair[::-1])) for pair in pairs]
    intervals = [one.effect.interval for one in leader_effects if one is not None]
    ends = [abs(one.mean) + one.half_95 for one in intervals]
    return math.expm1(max(ends)) if ends and len(ends) == len(pairs) else None


def _rounds_left(
    field: _Field, leads: Sequence[Lead], rounds: int, spread: Spread, rules: Rules
) -> int | None:
    """Rounds until the leader wins the final or all are tied, if leads and spread remain the same;
    None if that is after the last round."""
    before = rounds if field.before_final is None else field.before_final
    analyses = rules.analyses(before)
    for further in range(1, rules.max_rounds - rounds + 1):
        later = [Lead(lead.mean, lead.rounds + further) for lead in leads]
        fresh = rounds + further - before
        degrees = spread.degrees + further * len(leads)
        critical = t_quantile(1 - SIGNIFICANT * SHARE_OF_FINAL / 2 / analyses, degrees)
        reached = critical * math.sqrt(spread.variance / fresh)
        if fresh >= MIN_RUNS and min(lead.mean for lead in leads) > reached:
            return further
        if _are_tied(later, spread, rules):
            return further
    return None


def _left(contenders: Sequence[str], drops: Sequence[Drop]) -> list[str]:
    dropped = {drop.server for drop in drops}
    return [name for name in contenders if name not in dropped]


def _fastest_first(names: Sequence[str], rounds: Sequence[Round]) -> list[str]:
    return sorted(names, key=lambda name: _standing(name, names, rounds))


def _standing(name: str, names: Sequence[str], rounds: Sequence[Round]) -> float:
    """The mean distance from the others, over the rounds that each pair shares."""
    leads = [lead_of(name, other, rounds) for other in names if other != name]
    known = [lead.mean for lead in leads if lead is not None]
    return -sum(known) / len(known) if known else math.inf
