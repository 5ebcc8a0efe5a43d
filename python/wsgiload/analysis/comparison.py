"""Which differences between servers, or between two stored runs, are significant. Pure, from cells
of summary.json.

Within an experiment, servers are compared round by round, because the cells of a round share their
arrivals and their time. Servers with different apps are not compared, because the apps may cause
the difference. Two stored runs share no rounds, so they are compared as independent samples of two
sessions, with the variance that ``repeats`` found between sessions.

All claims of a report share one error probability, of which the deciding figure has most.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from types import MappingProxyType
from typing import Literal

from msgspec.structs import replace

from wsgiload.analysis.aggregate import (
    FIGURES,
    GOODPUT,
    Figure,
    Runs,
    ServerLevel,
    counted_runs,
    figure_of,
)
from wsgiload.analysis.attempts import is_discarded
from wsgiload.analysis.generator_delay import REASON as DELAY_REASON
from wsgiload.analysis.generator_delay import remains_slower
from wsgiload.analysis.overload import saturation_goodputs
from wsgiload.analysis.ranking import sustained
from wsgiload.analysis.repeats import MAY_DIFFER, NOTHING_LEARNED, OF_HOST, Learned
from wsgiload.documents.cell_result import CellResult, server_of
from wsgiload.documents.over_cells import ComparedFigure, Comparison
from wsgiload.documents.run_info import HostFacts
from wsgiload.documents.summary import ExperimentFacts, Summary
from wsgiload.statistics.effect import (
    DECISIVE_SHARE,
    MIN_RUNS,
    SAME_WITHIN,
    SIGNIFICANT,
    Effect,
    holm,
    paired_effect,
    unpaired_effect,
)
from wsgiload.statistics.sessions import Spread

Finding = Literal["different", "same", "undecided", "no inference"]
# A rate or connections, and an app.
Place = tuple[float | None, int | None, str | None]

# The figures of a comparison; one decides, and the others are shown next to it.
JUDGED: tuple[Figure, ...] = ("p99", "p50", GOODPUT)
# Above this share of its saturation throughput, small changes of the host change a server's
# quantiles a lot.
CAUTIOUS_SHARE = 0.8
_BOTH = 2
# The length of an abbreviated commit hash in git.
SHORT_COMMIT = 12
_ENDED = {
    "interrupted": "was interrupted, so it lacks some cells",
    "failed": "failed before it was complete",
}


@dataclass(frozen=True, slots=True)
class SamplePair:
    """Two samples of one figure at one load, with their names."""

    first: str
    second: str
    level: ServerLevel
    app: str | None
    effect: Effect | None
    rounds: int
    is_same_server: bool
    reason: str | None
    # Whether generator delay alone could explain the difference.
    may_be_delay: bool = False
    # The ratio of the medians if there is no confidence interval.
    factor: float | None = None
    # Between the sessions of two stored runs.
    spread: Spread | None = None

    @property
    def place(self) -> Place:
        """Load and app."""
        return self.level.rate, self.level.connections, self.app


@dataclass(frozen=True, slots=True)
class Change:
    """Two stored runs: their directories, the changes of each server, and other differences."""

    runs: tuple[str, str]
    comparisons: Sequence[Comparison]
    unlike: Sequence[str]


def default_figure(cells: Sequence[CellResult]) -> Figure:
    """p99 for a rate; goodput for a fixed number of users."""
    return "p99" if any(cell.rate is not None for cell in cells) else GOODPUT


def _chosen_figure(figure: str | None, cells: Sequence[CellResult]) -> Figure:
    return default_figure(cells) if figure is None else FIGURES[FIGURES.index(figure)]


def _known_figure(cells: Sequence[CellResult]) -> Figure:
    """The default figure, or the median if the cells have too few requests for it."""
    default = default_figure(cells)
    counted = [cell for cell in cells if not is_discarded(cell)]
    lacks = {figure: any(figure_of(cell, figure) is None for cell in counted) for figure in FIGURES}
    return "p50" if lacks[default] and not lacks["p50"] else default


def compare_servers(
    cells: Sequence[CellResult], figure: str | None = None, *, of_sessions: bool = False
) -> tuple[Comparison, ...]:
    """``comparisons`` of summary.json: at every load, all pairs of servers with the same app, in
    the order of the cells. ``of_sessions``: the rate counts sessions, so it is not comparable with
    a saturation throughput."""
    chosen = _chosen_figure(figure, cells)
    by_level = counted_runs(cells)
    kinds = kinds_of(cells)
    apps = _apps(cells)

    rivals: dict[Place, list[ServerLevel]] = {}
    for level in by_level:
        rivals.setdefault((level.rate, level.connections, apps[level.server]), []).append(level)
    both = [pair for levels in rivals.values() for pair in itertools.combinations(levels, _BOTH)]

    def of(figure: Figure) -> list[SamplePair]:
        return [
            _paired(
                (first, second),
                by_level,
                figure,
                app=apps[first.server],
                same=kinds[first.server] == kinds[second.server],
            )
            for first, second in both
        ]

    saturation = {} if of_sessions else saturation_goodputs(cells)
    return judged_pairs(chosen, of, _decisive_places(rivals, by_level), saturation)


def _decisive_places(
    rivals: Mapping[Place, Sequence[ServerLevel]], by_level: Mapping[ServerLevel, Runs]
) -> set[Place]:
    """For each app, the load that the answer is about: the highest that a server sustained, or the
    highest of all if none did."""

    def rank(place: Place) -> tuple[bool, float]:
        runs = [cell for level in rivals[place] for cell in by_level[level].values()]
        return any(map(sustained, runs)), place[0] or place[1] or 0.0

    apps = {app for *_, app in rivals}
    return {max((place for place in rivals if place[2] == app), key=rank) for app in apps}


def compare_runs(
    first: Sequence[CellResult],
    second: Sequence[CellResult],
    figure: str | None = None,
    *,
    of_sessions: bool = False,
    learned: Learned = NOTHING_LEARNED,
    share: float = 1.0,
) -> tuple[Comparison, ...]:
    """Every server at every load that both runs measured: the ratio of the second run's figure to
    the first's. The claims use this share of the error probability of the report."""
    chosen = _known_figure([*first, *second])
    if figure is not None:
        chosen = FIGURES[FIGURES.index(figure)]
    before = counted_runs(first)
    after = counted_runs(second)
    places = dict.fromkeys((level.rate, level.connections) for level in before)
    levels = [
        level
        for place in places
        for level in before
        if (level.rate, level.connections) == place and level in after
    ]

    def of(figure: Figure) -> list[SamplePair]:
        return [
            _unpaired(level, before[level], after[level], figure, learned.at(level, figure))
            for level in levels
        ]

    saturation = {} if of_sessions else saturation_goodputs(first) | saturation_goodputs(second)
    return judged_pairs(chosen, of, None, saturation, share)


def compared_figures(comparisons: Sequence[Comparison]) -> tuple[ComparedFigure, ...]:
    """The conclusive ones of these comparisons, as figures next to another comparison."""
    return tuple(
        ComparedFigure(
            figure=one.figure,
            factor=one.factor,
            interval_95=one.interval_95,
            p_adjusted=one.p_adjusted,
            margin=one.margin,
            conclusion=one.conclusion,
        )
        for one in comparisons
        if one.conclusion != "no inference"
        and one.factor is not None
        and one.interval_95 is not None
        and one.p_adjusted is not None
        and one.margin is not None
    )


def compare_summaries(
    first: Summary,
    second: Summary,
    figure: str | None = None,
    *,
    learned: Learned = NOTHING_LEARNED,
    share: float = 1.0,
) -> tuple[Comparison, ...]:
    """``compare_runs`` of two stored runs. A rate of sessions is not comparable with a saturation
    throughput."""
    of_sessions = any(run.experiment.sessions is not None for run in (first, second))
    return compare_runs(
        first.cells,
        second.cells,
        figure,
        of_sessions=of_sessions,
        learned=learned,
        share=share,
    )


def unlike(first: Summary, second: Summary) -> list[str]:
    """Other differences between two summaries, one sentence each, because they may explain
    different figures."""
    return [
        *(
            f"The {which} run {ended}."
            for which, run in (("first", first), ("second", second))
            if (ended := how_ended(run)) is not None
        ),
        *unlike_plans(first, second),
        *_revisions(first.experiment.app_revision, second.experiment.app_revision),
        *unlike_versions(first, second),
    ]


def how_ended(run: Summary) -> str | None:
    """``was interrupted, so it lacks some cells``; None of a complete run."""
    return _ENDED.get(run.status)


def unlike_plans(first: Summary, second: Summary) -> list[str]:
    """A sentence for each part of the plan that differs and affects the figures."""
    names = sorted(set(ExperimentFacts.__struct_fields__) - MAY_DIFFER)
    changes = _changed(first.experiment, second.experiment, names)
    return [f"The plans differ: {change}." for change in changes]


def unlike_versions(first: Summary, second: Summary) -> list[str]:
    """A sentence for each server whose version or Python differs."""
    before, now = _versions(first.cells), _versions(second.cells)
    return [
        f"{server} changed from {before[server]} to {now[server]}."
        for server in sorted(before.keys() & now.keys())
        if before[server] != now[server]
    ]


def _revisions(before: str | None, now: str | None) -> list[str]:
    """The app revisions, which are usually the reason to compare two runs."""
    if before is None or now is None:
        return []
    if before == now:
        return [f"Both runs measured revision {short_revision(before)} of the app."]
    return [f"The app changed from revision {short_revision(before)} to {short_revision(now)}."]


def short_revision(revision: str) -> str:
    """The abbreviated commit hash, with the mark of uncommitted changes."""
    commit, mark, changes = revision.partition("+")
    return commit[:SHORT_COMMIT] + mark + changes


def unlike_hosts(first: HostFacts | None, second: HostFacts | None) -> list[str]:
    """A sentence if the hosts of two runs differ; none if a run did not store its host."""
    if first is None or second is None:
        return []
    changes = _changed(first, second, OF_HOST)
    if not changes:
        return []
    return [f"Warning: the hosts differ: {', '.join(changes)}."]


def _changed(
    before: ExperimentFacts | HostFacts, now: ExperimentFacts | HostFacts, names: Sequence[str]
) -> list[str]:
    """``cpus changed from 1 to 2`` for each of these fields that differs."""
    return [
        f"{_key_words(name)} changed from {_shown(name, getattr(before, name))} to "
        f"{_shown(name, getattr(now, name))}"
        for name in names
        if getattr(before, name) != getattr(now, name)
    ]


def _key_words(name: str) -> str:
    """The name without its unit, which the value contains."""
    return name.removesuffix("_bytes").removesuffix("_s").replace("_", " ")


def _shown(name: str, value: object) -> str:
    if isinstance(value, tuple) and value:
        return ", ".join(_shown("", one) for one in value)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return str(value)
    if name.endswith("_bytes"):
        return f"{value / 2**20:,.10g} MiB"
    return f"{value:,.10g} s" if name.endswith("_s") else f"{value:,.10g}"


def _versions(cells: Sequence[CellResult]) -> dict[str, str]:
    return {
        server_of(cell): f"{cell.version} on Python {cell.python}"
        for cell in cells
        if cell.version is not None
    }


def kinds_of(cells: Sequence[CellResult]) -> dict[str, tuple[str | None, ...]]:
    """The server behind each name: two names with the same server are an A/A pair."""
    return {
        server_of(cell): (cell.server, cell.variant, cell.pinned_version, cell.profile, cell.size)
        for cell in cells
    }


def _apps(cells: Sequence[CellResult]) -> dict[str, str | None]:
    """The app of each server; None in runs stored before apps could be chosen."""
    return {server_of(cell): cell.app for cell in cells}


def _paired(
    both: tuple[ServerLevel, ServerLevel],
    by_level: Mapping[ServerLevel, Runs],
    figure: Figure,
    *,
    app: str | None,
    same: bool,
) -> SamplePair:
    first, second = both
    rounds = sorted(by_level[first].keys() & by_level[second].keys())
    cells = (
        [by_level[first][run] for run in rounds],
        [by_level[second][run] for run in rounds],
    )
    one, other = ([figure_of(cell, figure) for cell in of_one] for of_one in cells)

    reason = _why_not(one, other)
    effect = of_rounds(_logarithms(one), _logarithms(other)) if reason is None else None
    may_be_delay = effect is not None and not remains_slower(effect, cells, figure, of_rounds)
    return SamplePair(
        first.server, second.server, first, app, effect, len(rounds), same, reason, may_be_delay
    )


def of_rounds(one: Sequence[float], other: Sequence[float]) -> Effect:
    """The effect between the logarithms of two servers in the same rounds."""
    return paired_effect([first - second for first, second in zip(one, other, strict=True)])


def _unpaired(
    level: ServerLevel, before: Runs, after: Runs, figure: Figure, spread: Spread
) -> SamplePair:
    cells = (list(after.values()), list(before.values()))
    one, other = ([figure_of(cell, figure) for cell in of_one] for of_one in cells)
    reason = _why_not(one, other)
    compare = partial(unpaired_effect, between=spread)
    effect = compare(_logarithms(one), _logarithms(other)) if reason is None else None
    may_be_delay = effect is not None and not remains_slower(effect, cells, figure, compare)

    apps = {cell.app for runs in (after, before) for cell in runs.values()}
    return SamplePair(
        level.server,
        level.server,
        level,
        apps.pop() if len(apps) == 1 else None,
        effect,
        min(len(one), len(other)),
        False,
        reason,
        may_be_delay=may_be_delay,
        factor=None if effect is not None else _factor_of_medians(one, other),
        spread=spread if effect is not None else None,
    )


def _factor_of_medians(one: Sequence[float | None], other: Sequence[float | None]) -> float | None:
    """The ratio of the medians, without an interval; None if one has no figure."""
    known = [[value for value in values if value is not None] for values in (one, other)]
    if not all(known) or len(known[0]) != len(one) or len(known[1]) != len(other):
        return None
    factor = median(known[0]) / median(known[1]) if median(known[1]) > 0 else math.inf
    return factor if math.isfinite(factor) and factor > 0 else None


def _logarithms(values: Sequence[float | None]) -> list[float]:
    return [math.log(value) for value in values if value is not None]


def _why_not(one: Sequence[float | None], other: Sequence[float | None]) -> str | None:
    count = min(len(one), len(other))
    if count < MIN_RUNS:
        return f"only {count} of {MIN_RUNS} required runs"

    for values in (one, other):
        missed = sum(
            value is not None and not (math.isfinite(value) and value > 0) for value in values
        )
        if missed:
            return f"no finite value in {missed} of {len(values)} runs"
        if any(value is None for value in values):
            return "too few requests"
    return None


def judged_pairs(
    chosen: Figure,
    of: Callable[[Figure], Sequence[SamplePair]],
    decisive: Collection[Place] | None = None,
    saturation: Mapping[str, float] = MappingProxyType({}),
    share: float = 1.0,
) -> tuple[Comparison, ...]:
    """The comparisons by the chosen figure, each with those by the other figures. All of them share
    one error probability, most of which belongs to the chosen figure at the decisive loads (None:
    at all)."""
    figures = (chosen, *(figure for figure in JUDGED if figure != chosen))
    claims = [(figure, pair) for figure in figures for pair in of(figure)]
    tested = [at for at, (_, pair) in enumerate(claims) if pair.effect is not None]
    deciding = {
        at
        for at in tested
        if claims[at][0] == chosen and (decisive is None or claims[at][1].place in decisive)
    }
    weights = [
        DECISIVE_SHARE / len(deciding)
        if at in deciding
        else (1 - DECISIVE_SHARE) / (len(tested) - len(deciding))
        for at in tested
    ]
    probabilities = [pair.effect.p for _, pair in claims if pair.effect is not None]
    adjusted = dict(zip(tested, holm(probabilities, weights), strict=True))
    chance = _aa_spreads(claims)
    entries = [
        comparison_of(
            pair,
            figure,
            min(1.0, adjusted[at] / share) if at in adjusted else None,
            chance.get((figure, pair.place)),
            saturation,
        )
        for at, (figure, pair) in enumerate(claims)
    ]
    pairs = len(entries) // len(figures)
    return tuple(
        replace(entry, others=compared_figures(entries[at + pairs :: pairs]))
        for at, entry in enumerate(entries[:pairs])
    )


def _aa_spreads(
    claims: Sequence[tuple[Figure, SamplePair]],
) -> Mapping[tuple[Figure, Place], float]:
    """The largest difference, as a logarithm, that the same server showed at a load."""
    spreads: dict[tuple[Figure, Place], float] = {}
    for figure, pair in claims:
        if pair.effect is not None and pair.is_same_server:
            key, spread = (figure, pair.place), abs(pair.effect.interval.mean)
            spreads[key] = max(spread, spreads.get(key, 0.0))
    return spreads


def comparison_of(
    pair: SamplePair,
    figure: Figure,
    p_adjusted: float | None,
    aa_spread: float | None = None,
    saturation: Mapping[str, float] | None = None,
) -> Comparison:
    """An entry of ``comparisons``."""
    effect = pair.effect
    finding = judge(effect, p_adjusted, None if pair.is_same_server else aa_spread)
    is_open = finding == "different" and pair.may_be_delay
    return Comparison(
        first=pair.first,
        second=pair.second,
        rate=pair.level.rate,
        connections=pair.level.connections,
        app=pair.app,
        figure=figure,
        rounds=pair.rounds,
        same_server=pair.is_same_server,
        factor=effect.factor if effect else pair.factor,
        interval_95=effect.bounds if effect else None,
        p=effect.p if effect else None,
        p_adjusted=p_adjusted,
        aa_factor=math.exp(aa_spread) if aa_spread is not None else None,
        margin=math.expm1(effect.interval.margin) if effect else None,
        conclusion="undecided" if is_open else finding,
        reason=DELAY_REASON if is_open else pair.reason,
        relative_rate=_relative_rate(pair, saturation or {}),
        session_spread=pair.spread.deviation if pair.spread else None,
        session_repeats=pair.spread.sessions if pair.spread else None,
    )


def judge(effect: Effect | None, p_adjusted: float | None, aa_spread: float | None) -> Finding:
    """The finding. A difference requires an interval without 1, an adjusted p below 0.05, and a
    larger effect than the same server showed in the A/A test (``aa_spread``, a logarithm). An
    effect that is certainly within 5 % is called "same"."""
    if effect is None or p_adjusted is None:
        return "no inference"

    if effect.interval.lies_within(math.log1p(SAME_WITHIN)):
        return "same"
    exceeds_chance = abs(effect.interval.mean) > (aa_spread or 0.0)
    if effect.interval.excludes_zero() and p_adjusted < SIGNIFICANT and exceeds_chance:
        return "different"
    return "undecided"


def _relative_rate(pair: SamplePair, saturation: Mapping[str, float]) -> float | None:
    """The larger utilization of the two servers, relative to their saturation throughput; None
    unless both were saturated."""
    if pair.level.rate is None or not {pair.first, pair.second} <= saturation.keys():
        return None
    return pair.level.rate / min(saturation[pair.first], saturation[pair.second])


def drift_factor(share: float) -> float:
    """The relative change of p99 per relative change of the saturation throughput.

    In an M/M/1 queue with arrival rate lambda and service rate mu, p99 is ln(100) / (mu - lambda),
    so the factor is mu / (mu - lambda) = 1 / (1 - rho) (Kleinrock, *Queueing Systems*, volume 1,
    1975).
    """
    return math.inf if share >= 1 else 1 / (1 - share)
