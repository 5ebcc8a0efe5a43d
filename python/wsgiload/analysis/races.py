"""The race of the servers at each load, from the cells of a summary. Pure.

``statistics.leading`` decides the race. This module defines a block: the valid runs of servers with
the same app at the same load.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace as replaced
from itertools import combinations
from typing import Literal

from msgspec.structs import replace

from wsgiload.analysis.aggregate import GOODPUT, Figure, ServerLevel, counted_runs, figure_of
from wsgiload.analysis.attempts import is_discarded
from wsgiload.analysis.comparison import (
    JUDGED,
    SamplePair,
    compared_figures,
    comparison_of,
    kinds_of,
    of_rounds,
)
from wsgiload.analysis.generator_delay import remains_slower
from wsgiload.analysis.ranking import error_ratio, sustained
from wsgiload.documents.answer import RankingEntry, RankingLevel
from wsgiload.documents.cell_result import CellResult, server_of
from wsgiload.documents.over_cells import Comparison, Race, RaceDropout, RaceStanding
from wsgiload.documents.summary import ExperimentFacts
from wsgiload.procedures.race import ObjectiveState
from wsgiload.statistics.effect import DECISIVE_SHARE, MIN_RUNS, Effect, Interval, paired_effect
from wsgiload.statistics.leading import ERROR, Block, Compared, Rules, State, compare, fit_of, judge


@dataclass(frozen=True, slots=True)
class Track:
    """Where servers race: one load and one app."""

    rate: float | None
    connections: int | None
    app: str | None

    @property
    def figure(self) -> Figure:
        """The figure that decides the race."""
        return GOODPUT if self.rate is None else "p99"


def rules_of(margin: float, planned_blocks: float, share: float = DECISIVE_SHARE) -> Rules:
    """The rules of a race that may use this share of the error probability."""
    return Rules(margin, ERROR * share, planned_blocks)


def _rules(facts: ExperimentFacts, share: float) -> Rules:
    planned = float(facts.runs) if facts.planned_blocks is None else facts.planned_blocks
    return rules_of(facts.margin or 0.1, planned, share)


def _other_share(levels: int) -> float:
    """The share of every figure at every level that does not decide."""
    return (1 - DECISIVE_SHARE) / (len(JUDGED) * max(1, levels))


def race_states(cells: Sequence[CellResult], facts: ExperimentFacts) -> dict[Track, State]:
    """The race on every track with several servers. The highest level that any server sustains
    decides the race of an app; the other levels share what is left of the error probability."""
    tracks = {track: names for track, names in tracks_of(cells).items() if len(names) > 1}
    share = _other_share(len(tracks))
    states, decided = dict[Track, State](), set[str | None]()
    for track in sorted(tracks, key=lambda one: -(one.rate or one.connections or 0.0)):
        is_decisive = track.app not in decided
        rules = _rules(facts, DECISIVE_SHARE if is_decisive else share)
        blocks = rounds_of(track, tracks[track], cells)
        states[track] = judge(tracks[track], blocks, rules)
        if states[track].contenders:
            decided.add(track.app)
    return states


def _may_be_delay(
    track: Track, figure: Figure, both: tuple[str, str], cells: Sequence[CellResult]
) -> bool:
    """Whether generator delay alone could explain the difference."""
    counted = counted_runs(cells)
    first, second = (
        counted.get(ServerLevel(one, track.rate, track.connections), {}) for one in both
    )
    rounds = [(first[run], second[run]) for run in sorted(first.keys() & second.keys())]
    known = [
        (cells, logarithms)
        for cells in rounds
        if (logarithms := _finite_logarithms(cells, figure)) is not None
    ]
    if len(known) < MIN_RUNS:
        return False

    shared = ([cells[0] for cells, _ in known], [cells[1] for cells, _ in known])
    effect = paired_effect([one - other for _, (one, other) in known])
    return not remains_slower(effect, shared, figure, of_rounds)


def _finite_logarithms(
    cells: tuple[CellResult, CellResult], figure: Figure
) -> tuple[float, float] | None:
    one, other = (logarithm_of(cell, figure) for cell in cells)
    if one is None or other is None or not math.isfinite(one + other):
        return None
    return one, other


def rounds_of(
    track: Track,
    servers: Sequence[str],
    cells: Sequence[CellResult],
    figure: Figure | None = None,
) -> list[Block]:
    """The logarithms of the deciding figure, or of ``figure``, in each run that has a valid trial;
    smaller is better."""
    rounds: dict[int, dict[str, float]] = {}
    for level, runs in counted_runs(cells).items():
        if (level.rate, level.connections) != (track.rate, track.connections):
            continue
        for run, cell in runs.items():
            value = logarithm_of(cell, figure or track.figure)
            if level.server in servers and value is not None:
                rounds.setdefault(run, {})[level.server] = value
    return [rounds[run] for run in sorted(rounds)]


def logarithm_of(cell: CellResult, figure: Figure | None = None) -> float | None:
    """The logarithm of a figure, by default the one that decides the race; infinite if the server
    failed or requests failed, None without a valid measurement."""
    if is_discarded(cell):
        return None
    chosen: Figure = figure or Track(cell.rate, cell.connections, cell.app).figure
    value = figure_of(cell, chosen)
    if value is None:
        return None
    if not 0 < value < math.inf or not (sustained(cell) and error_ratio([cell]) == 0):
        return math.inf
    return -math.log(value) if chosen == GOODPUT else math.log(value)


def tracks_of(cells: Sequence[CellResult]) -> dict[Track, tuple[str, ...]]:
    """Every measured track with its servers."""
    tracks: dict[Track, dict[str, None]] = {}
    for cell in cells:
        track = Track(cell.rate, cell.connections, cell.app)
        tracks.setdefault(track, {})[server_of(cell)] = None
    return {track: tuple(servers) for track, servers in tracks.items()}


def races(cells: Sequence[CellResult], facts: ExperimentFacts) -> tuple[Race, ...]:
    """``races`` of summary.json."""
    return tuple(
        race_of(track, state, _is_delay(track, state, cells))
        for track, state in race_states(cells, facts).items()
    )


def _is_delay(track: Track, state: State, cells: Sequence[CellResult]) -> bool:
    """Whether the generator's delay alone may explain the lead of a winner."""
    rivals = [one.server for one in state.standings if one.relation == "behind"]
    if len(state.contenders) != 1 or not rivals:
        return False
    return _may_be_delay(track, track.figure, (rivals[0], state.contenders[0]), cells)


def race_of(track: Track, state: State, is_delay: bool) -> Race:
    """A race as an entry of ``races``."""
    contending = [one for one in state.standings if one.server in state.contenders]
    ends = [one.interval for one in contending if one.interval is not None]
    widest = max((max(high, 1 / low) for low, high in ends), default=None)
    standings = {one.server: one for one in state.standings}
    return Race(
        rate=track.rate,
        connections=track.connections,
        app=track.app,
        outcome="undecided" if is_delay else _outcome(state),
        contenders=state.contenders,
        dropped_out=tuple(
            RaceDropout(
                server=name,
                rounds=block,
                behind=None if name in state.failed else state.leader,
                factor=standings[name].ratio if name in standings else None,
            )
            for name, block in state.dropped.items()
        ),
        standings=tuple(
            RaceStanding(
                server=one.server,
                relation=one.relation,
                rounds=one.blocks,
                factor=one.ratio,
                interval_95=one.interval,
            )
            for one in state.standings
        ),
        margin=widest - 1 if widest is not None and len(ends) == len(contending) else None,
        rounds_left=None if is_delay else state.blocks_left,
    )


def _outcome(state: State) -> Literal["winner", "ties", "leader", "undecided", "failed"]:
    if not state.contenders:
        return "failed"
    if state.leader is None or not state.standings:
        return "undecided"
    if not state.is_decided:
        return "leader" if state.is_good else "undecided"
    return "winner" if len(state.contenders) == 1 else "ties"


def race_document(track: Track, state: ObjectiveState) -> Race:
    """A race with an objective as an entry of ``races``."""
    return Race(
        rate=track.rate,
        connections=track.connections,
        app=track.app,
        outcome=state.outcome,
        contenders=state.contenders,
        dropped_out=tuple(
            RaceDropout(
                server=drop.server, rounds=drop.after_block, behind=drop.behind, factor=None
            )
            for drop in state.dropped
        ),
        margin=None,
        rounds_left=None,
    )


def race_comparisons(cells: Sequence[CellResult], facts: ExperimentFacts) -> tuple[Comparison, ...]:
    """``comparisons`` of a race: each pair of servers, with intervals that are valid at whichever
    analysis the race ended."""
    tracks, decisive = tracks_of(cells), dict[str | None, Track]()
    for track, state in race_states(cells, facts).items():
        if state.contenders:
            decisive.setdefault(track.app, track)
    other = _other_share(len(tracks))
    return tuple(
        comparison
        for track, servers in tracks.items()
        for comparison in _of_track(
            track,
            servers,
            cells,
            _rules(facts, DECISIVE_SHARE if decisive.get(track.app) == track else other),
            _rules(facts, other),
        )
    )


def _of_track(
    track: Track,
    servers: Sequence[str],
    cells: Sequence[CellResult],
    deciding: Rules,
    other: Rules,
) -> list[Comparison]:
    pairs = list(combinations(servers, 2))
    others = [figure for figure in JUDGED if figure != track.figure]
    of_figures = {
        figure: rounds_of(track, servers, cells, figure) for figure in (track.figure, *others)
    }
    fits = {figure: (blocks, fit_of(servers, blocks)) for figure, blocks in of_figures.items()}

    def compared(figure: Figure, both: tuple[str, str]) -> Comparison:
        share = deciding if figure == track.figure else other
        rules = replaced(share, error=share.error / len(pairs))
        blocks, fit = fits[figure]
        shared = sum(all(math.isfinite(one.get(name, math.inf)) for name in both) for one in blocks)
        effect = compare(*both, blocks, fit, rules)
        return _comparison((track, figure), both, effect, shared, cells)

    return [
        replace(
            compared(track.figure, both),
            others=compared_figures([compared(figure, both) for figure in others]),
        )
        for both in pairs
    ]


def _comparison(
    what: tuple[Track, Figure],
    both: tuple[str, str],
    compared: Compared | None,
    shared: int,
    cells: Sequence[CellResult],
) -> Comparison:
    """The comparison of two servers by one figure in ``shared`` common rounds."""
    track, figure = what
    one, other = both
    kinds = kinds_of(cells)
    effect = None if compared is None else _effect(compared)
    if effect is not None and figure == GOODPUT:
        effect = effect.inverted()
    pair = SamplePair(
        first=one,
        second=other,
        level=ServerLevel(one, track.rate, track.connections),
        app=track.app,
        effect=effect,
        rounds=effect.runs if effect is not None else shared,
        is_same_server=kinds[one] == kinds[other],
        reason=f"too few runs ({shared})" if effect is None else None,
        may_be_delay=effect is not None and _may_be_delay(track, figure, both, cells),
    )
    return comparison_of(pair, figure, compared.p_adjusted if compared is not None else None)


def _effect(compared: Compared) -> Effect:
    """In the form of comparisons that are analysed once."""
    half_90 = max(0.0, math.log1p(compared.margin) - abs(compared.mean))
    interval = Interval(compared.mean, compared.half, half_90)
    return Effect(interval, compared.p, compared.blocks)


def race_at(races: Sequence[Race] | None, level: RankingLevel) -> Race | None:
    """The race at this level."""
    place = (level.rate, level.connections, level.app)
    of_level = [one for one in races or () if (one.rate, one.connections, one.app) == place]
    return of_level[0] if of_level else None


def _unless_failed(entry: RankingEntry, race: Race) -> RankingEntry:
    """A server that failed in one of at least four launches is ranked, as in the race, which drops
    it after two."""
    relations = {one.server: one.relation for one in race.standings}
    races = race.standings and (
        entry.label in race.contenders or relations.get(entry.label) == "behind"
    )
    if races and entry.status in ("overloaded", "errors") and len(entry.cell_ids) >= MIN_RUNS:
        return replace(entry, status="ranked")
    return entry


def ranked_by_race(level: RankingLevel, race: Race) -> RankingLevel:
    """Contenders first, then the servers that fell behind. Servers that missed an objective or
    failed keep their order, because when they dropped out says nothing about them."""
    behind = [drop for drop in race.dropped_out if drop.factor is not None]
    if race.standings:
        behind.sort(key=lambda drop: drop.factor or 0.0)
    else:
        behind.reverse()
    order = [*race.contenders, *(drop.server for drop in behind)]
    places = {name: place for place, name in enumerate(order)}
    relations = {one.server: one.relation for one in race.standings}
    alike = () if race.outcome == "winner" else race.contenders

    def key(entry: RankingEntry) -> tuple[bool, int]:
        is_ranked = entry.status == "ranked"
        return not is_ranked, places.get(entry.label, len(places)) if is_ranked else 0

    def related(entry: RankingEntry, kind: str) -> tuple[str, ...]:
        """The contenders of this kind; a pair is as uncertain as its less certain server."""
        if entry.label not in alike:
            return ()
        own = relations.get(entry.label, "tied")
        return tuple(
            name
            for name in names
            if name != entry.label
            and ("open" if "open" in (own, relations.get(name, "tied")) else "tied") == kind
        )

    entries = sorted((_unless_failed(one, race) for one in level.entries), key=key)
    names = [entry.label for entry in entries if entry.status == "ranked" and entry.label in alike]
    return replace(
        level,
        entries=tuple(
            replace(
                entry,
                tied_with=related(entry, "tied"),
                undecided_with=related(entry, "open"),
            )
            for entry in entries
        ),
    )
