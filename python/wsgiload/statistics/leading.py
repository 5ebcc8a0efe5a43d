"""Which server leads, which are behind it, and which are equal for all practical purposes, after
every block of launches. Pure.

In a block, every server still in the race is launched once; a launch is one observation, the
logarithm of its figure (smaller is better). Three claims are made about a server and the leader:

- *behind*: its figure is larger, by an interval of the ratio that excludes 1. It drops out.
- *tied*: the interval of the ratio lies within the margin.
- *open*: neither, yet.

Each server has a variance of its own, shrunk towards the one of all (G. K. Smyth, "Linear models
and empirical Bayes methods", 2004), because launches of some servers scatter three times as much as
others'. A launch that is far slower than its server and its block let expect (a disturbed
one) does not count. Decision 34 has the simulations that set the constants.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from statistics import NormalDist, fmean, median
from typing import Literal

from wsgiload.statistics.effect import t_cumulative, t_quantile

# Logarithms of one block by server: infinite if the launch failed, absent without a valid trial.
Block = Mapping[str, float]
Relation = Literal["behind", "tied", "open", "failed"]

ERROR = 0.05
# Analyses after every block are worth this many independent ones (found by simulation).
LOOKS = 1.35
_NORMAL = NormalDist()
MAX_FAILURES = 2
MAX_FURTHER = 200
# Launches of one server do not differ by this factor, so one block is enough to drop a server.
FAR_BEHIND = math.log(3.5)
# Degrees of freedom of the common variance that each server's own borrows.
BORROWED = 4
# A launch this many deviations slower than usual is disturbed.
DISTURBED = 4.0
_MAD_TO_DEVIATION = 1.4826
_SWEEPS = 4
_RISE = 0.4
_TINY = 1e-9
_WIDEST = math.log(1e6)
# Fewer do not show what is usual.
MIN_DEGREES = 5


@dataclass(frozen=True, slots=True)
class Rules:
    """The smallest ratio that matters, and the error probability of all claims on one track."""

    margin: float = 0.1
    error: float = ERROR
    # The blocks that the budget allows if no server drops out.
    planned_blocks: float = 12.0

    def beyond(self, blocks: int, sides: int, claims: int = 1) -> float:
        """The error probability of a one-sided claim after this many blocks: early ones need more
        evidence (S. K. Wang and A. A. Tsiatis, "Approximately optimal one-parameter boundaries for
        group sequential trials", 1987, with exponent 1/4)."""
        last = _NORMAL.inv_cdf(1 - self.error / sides / claims / LOOKS)
        normal = last * max(1.0, self.planned_blocks / blocks) ** _RISE
        return math.erfc(normal / math.sqrt(2)) / 2  # not 0 as far out as with NormalDist.cdf

    @property
    def within(self) -> float:
        """The margin as a logarithm."""
        return math.log1p(self.margin)


@dataclass(frozen=True, slots=True)
class Gap:
    """How far a server is behind another, as logarithms, over their common blocks."""

    mean: float
    error: float
    degrees: int
    blocks: int

    def half(self, beyond: float) -> float:
        """Half the width of the interval that errs with this probability on either side."""
        return min(
            _WIDEST, t_quantile(1 - max(beyond, _TINY), self.degrees) * max(self.error, _TINY)
        )


@dataclass(frozen=True, slots=True)
class Standing:
    """A server against the leader; the interval is valid at whichever analysis the race ends."""

    server: str
    relation: Relation
    blocks: int
    ratio: float | None = None
    interval: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class State:
    """A race after some blocks: the remaining contenders, and after which block the others
    dropped out."""

    contenders: tuple[str, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)
    failed: frozenset[str] = frozenset()
    leader: str | None = None
    standings: tuple[Standing, ...] = ()
    blocks_left: int | None = None
    # Whether no contender can be better than the leader by more than the margin.
    is_good: bool = False

    @property
    def is_decided(self) -> bool:
        """Whether no contender is open."""
        if self.leader is None:
            return not self.contenders
        return not any(one.relation == "open" for one in self.standings)


@dataclass(frozen=True, slots=True)
class Fit:
    """The places of the servers, and their variances with degrees of freedom."""

    places: Mapping[str, float]
    variances: Mapping[str, float]
    degrees: Mapping[str, int]
    of_all: int
    disturbed: frozenset[tuple[int, str]]


def judge(servers: Sequence[str], blocks: Sequence[Block], rules: Rules) -> State:
    """The state after all blocks. Replays them, so no drop is ever reversed."""
    state = State(tuple(servers))
    for count in range(1, len(blocks) + 1):
        state = advance(state, blocks[:count], rules)
    return state


def advance(state: State, blocks: Sequence[Block], rules: Rules) -> State:
    """The state after the last of these blocks, from the state before it."""
    dropped, failed = dict(state.dropped), set(state.failed)
    contenders = list(state.contenders)
    for name in [one for one in contenders if _failures(one, blocks) >= MAX_FAILURES]:
        contenders.remove(name)
        dropped[name] = len(blocks)
        failed.add(name)

    fit = fit_of([*contenders, *(name for name in dropped if name not in failed)], blocks)
    contenders.sort(key=lambda name: fit.places.get(name, math.inf))
    while (behind := _behind(contenders, blocks, fit, rules)) is not None:
        contenders.remove(behind)
        dropped[behind] = len(blocks)
    return _judged(State(tuple(contenders), dropped, frozenset(failed)), blocks, fit, rules)


def _failures(name: str, blocks: Sequence[Block]) -> int:
    return sum(math.isinf(one.get(name, 0.0)) for one in blocks)


def _behind(
    contenders: Sequence[str], blocks: Sequence[Block], fit: Fit, rules: Rules
) -> str | None:
    """The contender that is most clearly behind the leader; None if none is. The error probability
    is divided by the number of rivals left (Holm 1979)."""
    if len(contenders) < 2:
        return None
    leader, *rivals = contenders
    surest: tuple[float, str] | None = None
    for name in rivals:
        gap = gap_of(leader, name, blocks, fit)
        if _relation(gap, rules) == "tied":
            continue  # a difference that does not matter, however certain
        if gap is None:
            clear = _clear_at_once(leader, name, blocks)
        else:
            clear = gap.mean / gap.half(rules.beyond(gap.blocks, 2, len(rivals)))
        if clear > 1 and (surest is None or clear > surest[0]):
            surest = clear, name
    return None if surest is None else surest[1]


def _clear_at_once(leader: str, name: str, blocks: Sequence[Block]) -> float:
    return max(_first(leader, name, blocks), default=0.0) / FAR_BEHIND


def _common(one: str, other: str, blocks: Sequence[Block]) -> list[int]:
    return [
        at
        for at, block in enumerate(blocks)
        if block.get(one, math.inf) < math.inf and block.get(other, math.inf) < math.inf
    ]


def gap_of(leader: str, name: str, blocks: Sequence[Block], fit: Fit) -> Gap | None:
    """None with fewer than two common blocks in which neither launch was disturbed."""
    usual = [
        blocks[at][name] - blocks[at][leader]
        for at in _common(leader, name, blocks)
        if not {(at, name), (at, leader)} & fit.disturbed
    ]
    if len(usual) < 2 or not fit.variances:
        return None
    pair = (fit.variances[leader], fit.variances[name])
    # Satterthwaite's degrees of freedom of a sum of two variances.
    weights = pair[0] ** 2 / fit.degrees[leader] + pair[1] ** 2 / fit.degrees[name]
    degrees = max(1, min(fit.of_all, int(sum(pair) ** 2 / max(weights, _TINY**4))))
    return Gap(fmean(usual), math.sqrt(sum(pair) / len(usual)), degrees, len(usual))


def _judged(state: State, blocks: Sequence[Block], fit: Fit, rules: Rules) -> State:
    """The state with the standing of every server against the leader."""
    if not state.contenders or state.contenders[0] not in fit.places:
        return state
    leader, *rivals = state.contenders
    behind = sorted(set(state.dropped) - state.failed, key=lambda name: fit.places[name])
    gaps = {name: gap_of(leader, name, blocks, fit) for name in (*rivals, *behind)}
    relations: dict[str, Relation] = {name: _relation(gaps[name], rules) for name in rivals}
    standings = [
        _standing(name, relations.get(name, "behind"), gap, _first(leader, name, blocks), rules)
        for name, gap in gaps.items()
    ]
    standings += [Standing(name, "failed", len(blocks)) for name in sorted(state.failed)]
    still_open = [gaps[name] for name in rivals if relations[name] == "open"]
    further = [
        None if gap is None else _further_blocks(gap, len(rivals), rules) for gap in still_open
    ]
    known = [count for count in further if count is not None]
    return replace(
        state,
        leader=leader,
        standings=tuple(standings),
        blocks_left=max(known) if known and len(known) == len(further) else None,
        is_good=all(gap is not None and _is_no_better(gap, rules) for gap in still_open),
    )


def _relation(gap: Gap | None, rules: Rules) -> Relation:
    if gap is None:
        return "open"
    reach = abs(gap.mean) + gap.half(rules.beyond(gap.blocks, 1))
    return "tied" if reach < rules.within else "open"


def _is_no_better(gap: Gap, rules: Rules) -> bool:
    """Whether the server cannot be better than the leader by more than the margin."""
    return gap.mean - gap.half(rules.beyond(gap.blocks, 1)) > -rules.within


def _first(leader: str, name: str, blocks: Sequence[Block]) -> list[float]:
    return [blocks[at][name] - blocks[at][leader] for at in _common(leader, name, blocks)]


def _standing(
    name: str, relation: Relation, gap: Gap | None, differences: Sequence[float], rules: Rules
) -> Standing:
    if gap is None:
        ratio = math.exp(fmean(differences)) if differences else None
        return Standing(name, relation, len(differences), ratio)
    half = gap.half(rules.beyond(gap.blocks, 2))
    ends = (math.exp(gap.mean - half), math.exp(gap.mean + half))
    return Standing(name, relation, gap.blocks, math.exp(gap.mean), ends)


@dataclass(frozen=True, slots=True)
class Compared:
    """The first server against the second, with p adjusted for all analyses and claims."""

    mean: float
    half: float
    p: float
    p_adjusted: float
    margin: float
    blocks: int


def compare(
    one: str, other: str, blocks: Sequence[Block], fit: Fit, rules: Rules
) -> Compared | None:
    """The ratio of the first to the second; None with fewer than two common blocks."""
    gap = gap_of(other, one, blocks, fit)
    if gap is None:
        return None
    beyond = rules.beyond(gap.blocks, 2)
    half = gap.half(beyond)
    p = min(1.0, 2 * t_cumulative(-abs(gap.mean) / max(gap.error, _TINY), gap.degrees))
    reach = abs(gap.mean) + gap.half(rules.beyond(gap.blocks, 1))
    adjusted = min(1.0, p * ERROR / (2 * beyond))
    return Compared(gap.mean, half, p, adjusted, math.expm1(min(_WIDEST, reach)), gap.blocks)


def _further_blocks(gap: Gap, rivals: int, rules: Rules) -> int | None:
    """Blocks until the server is behind or tied if the gap and its scatter stay as they are; None
    if that takes too many."""
    for further in range(1, MAX_FURTHER):
        blocks = gap.blocks + further
        later = replace(
            gap,
            error=gap.error * math.sqrt(gap.blocks / blocks),
            degrees=gap.degrees + further,
            blocks=blocks,
        )
        if gap.mean > later.half(rules.beyond(blocks, 2, rivals)):
            return further
        if abs(gap.mean) + later.half(rules.beyond(blocks, 1)) < rules.within:
            return further
    return None


def fit_of(servers: Sequence[str], blocks: Sequence[Block]) -> Fit:
    """Places of servers and their scatter, without disturbed launches: found around medians
    (Tukey's median polish), then judged again around means."""
    values = {
        (at, name): block[name]
        for at, block in enumerate(blocks)
        for name in servers
        if block.get(name, math.inf) < math.inf
    }
    places, residuals = _polished(values, median)
    disturbed = _far(residuals, _deviation(residuals))
    places, residuals = _polished(values, fmean, disturbed)
    disturbed = _far(residuals, _spread(residuals, disturbed))
    places, residuals = _polished(values, fmean, disturbed)
    return _scatter(
        places, {at: one for at, one in residuals.items() if at not in disturbed}, disturbed
    )


Values = Mapping[tuple[int, str], float]


def _polished(
    values: Values,
    middle: Callable[[Sequence[float]], float],
    without: Set[tuple[int, str]] = frozenset(),
) -> tuple[dict[str, float], dict[tuple[int, str], float]]:
    """The places of the servers, and what neither they nor the levels of the blocks explain."""
    by_block: dict[int, list[tuple[str, float]]] = {}
    by_server: dict[str, list[tuple[int, float]]] = {}
    for (at, name), value in values.items():
        if (at, name) not in without:
            by_block.setdefault(at, []).append((name, value))
            by_server.setdefault(name, []).append((at, value))
    levels = dict.fromkeys((at for at, _ in values), 0.0)
    places = {name: middle([value for _, value in own]) for name, own in by_server.items()}
    for _ in range(_SWEEPS):
        for at, block in by_block.items():
            levels[at] = middle([value - places[name] for name, value in block])
        for name, own in by_server.items():
            places[name] = middle([value - levels[at] for at, value in own])
    return places, {
        (at, name): value - levels[at] - places[name]
        for (at, name), value in values.items()
        if name in places
    }


def _degrees(residuals: Values) -> int:
    blocks, servers = {at for at, _ in residuals}, {name for _, name in residuals}
    return len(residuals) - len(blocks) - len(servers) + 1


def _deviation(residuals: Values) -> float:
    """The deviation of most residuals. Medians leave many at exactly zero, which tell nothing."""
    known = [abs(one) for one in residuals.values() if abs(one) > _TINY]
    return _MAD_TO_DEVIATION * median(known) if known else 0.0


def _spread(residuals: Values, without: Set[tuple[int, str]]) -> float:
    usual = {at: one for at, one in residuals.items() if at not in without}
    degrees = max(1, _degrees(usual))
    return math.sqrt(sum(one * one for one in usual.values()) / degrees)


def _far(residuals: Values, deviation: float) -> frozenset[tuple[int, str]]:
    """The launches that are far slower than usual: with too few, none. A disturbance never makes a
    server faster."""
    if _degrees(residuals) < MIN_DEGREES:
        return frozenset()
    own: dict[str, list[float]] = {}
    for (_, name), one in residuals.items():
        own.setdefault(name, []).append(abs(one))
    usual = {name: max(deviation, _MAD_TO_DEVIATION * median(ones)) for name, ones in own.items()}
    return frozenset(
        (at, name) for (at, name), one in residuals.items() if one > DISTURBED * usual[name]
    )


def _scatter(
    places: Mapping[str, float], residuals: Values, disturbed: frozenset[tuple[int, str]]
) -> Fit:
    degrees = _degrees(residuals)
    if degrees < 1:
        return Fit(places, {}, {}, 0, disturbed)
    common = sum(one * one for one in residuals.values()) / degrees
    lost = len(residuals) / degrees  # what the fitted places took of the scatter
    variances, freedoms = dict[str, float](), dict[str, int]()
    for name in places:
        own = [one for (_, of), one in residuals.items() if of == name]
        count = max(1, len(own) - 1)
        variance = lost * fmean(one * one for one in own)
        borrowed = min(BORROWED, max(0, degrees - count))
        variances[name] = (count * variance + borrowed * common) / (count + borrowed)
        freedoms[name] = count + borrowed
    return Fit(places, variances, freedoms, degrees, disturbed)
