"""The race of the servers at each load, from the cells of a summary. Pure.

``statistics.race`` decides the race, and ``statistics.halving`` the qualification. This module
defines a round: the valid runs of servers with the same app at the same load.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace as replaced

from msgspec.structs import replace

from wsgiload.analysis.aggregate import (
    GOODPUT,
    QUANTILES,
    Figure,
    ServerLevel,
    counted_runs,
    figure_of,
)
from wsgiload.analysis.comparison import (
    JUDGED,
    SamplePair,
    compared_figures,
    comparison_of,
    kinds_of,
    of_rounds,
)
from wsgiload.analysis.generator_delay import remains_slower
from wsgiload.documents.answer import RankingEntry, RankingLevel
from wsgiload.documents.cell_result import CellResult, server_of
from wsgiload.documents.experiment_facts import ExperimentFacts
from wsgiload.documents.over_cells import Comparison, Race, RaceDropout
from wsgiload.statistics.effect import MIN_RUNS, paired_effect
from wsgiload.statistics.halving import Qualified, qualify
from wsgiload.statistics.race import (
    RaceEffect,
    RaceState,
    Rules,
    judge_race,
    pair_effects,
    race_effects,
)
from wsgiload.statistics.sequential import Round, differences


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


@dataclass(frozen=True, slots=True)
class Stages:
    """The runs of a race: short ones that select the field, then the race itself."""

    runs: int
    qualifying: int = 0
    field: int = 0

    @property
    def rules(self) -> Rules:
        """The rules of the race itself."""
        return Rules(max(1, self.runs - self.qualifying))


def stages_of(facts: ExperimentFacts) -> Stages:
    """The stages of a stored experiment."""
    first = facts.qualifying
    return Stages(facts.runs, first.rounds, first.max_servers) if first else Stages(facts.runs)


def after_qualifying(cells: Sequence[CellResult], facts: ExperimentFacts) -> Sequence[CellResult]:
    """The cells on which figures are based: those of the race, or all of them before it began."""
    if facts.qualifying is None:
        return cells
    return [cell for cell in cells if cell.run > facts.qualifying.rounds] or cells


def race_state(
    track: Track,
    servers: Sequence[str],
    cells: Sequence[CellResult],
    stages: Stages,
    before_run: int | None = None,
) -> RaceState:
    """The state of the race on this track; uses only the runs before ``before_run``, if given."""
    end = stages.runs + 1 if before_run is None else before_run
    first = range(1, min(stages.qualifying + 1, end))
    qualified = _qualified(track, servers, cells, (first, stages.field))
    raced = range(stages.qualifying + 1, end)
    rounds = rounds_of(track, qualified.contenders, cells, raced)
    state = judge_race(qualified.contenders, rounds, stages.rules)

    if len(qualified.contenders) == 1 and qualified.drops and len(rounds) >= MIN_RUNS:
        state = replaced(state, outcome="winner")  # all others failed
    elif state.outcome == "winner" and len(state.contenders) > 1:
        winner, rival = state.contenders[:2]
        counted = [cell for cell in cells if cell.run in raced]
        if _may_be_delay(track, track.figure, (rival, winner), counted):
            state = replaced(state, outcome="undecided")
    return replaced(state, dropped=(*qualified.drops, *state.dropped))


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
    cells: tuple[CellResult, CellResult], figure: str
) -> tuple[float, float] | None:
    one, other = (_logarithm(cell, figure) for cell in cells)
    if one is None or other is None or not math.isfinite(one + other):
        return None
    return one, other


def _qualified(
    track: Track,
    servers: Sequence[str],
    cells: Sequence[CellResult],
    stage: tuple[range, int],
) -> Qualified:
    runs, field = stage
    rounds = [_short_round(track, servers, cells, run) for run in runs]
    return qualify(servers, rounds, field)


def _short_round(
    track: Track, servers: Sequence[str], cells: Sequence[CellResult], run: int
) -> Round:
    """p99 of a short trial, however few requests it has, because it is only used for a
    selection."""
    logarithms = {}
    for level, runs in counted_runs(cells).items():
        is_here = (level.rate, level.connections) == (track.rate, track.connections)
        if is_here and run in runs and level.server in servers:
            value = _short_logarithm(runs[run], track)
            if value is not None:
                logarithms[level.server] = value
    return logarithms


def _short_logarithm(cell: CellResult, track: Track) -> float | None:
    bounds = (cell.offered_quantiles_ns or {}).get(f"{QUANTILES['p99']:g}")
    if track.rate is None or cell.failure is not None or bounds is None:
        return _logarithm(cell, track.figure)
    return math.log(bounds.high) if bounds.high else math.inf


def rounds_of(
    track: Track,
    servers: Sequence[str],
    cells: Sequence[CellResult],
    of_runs: range,
    figure: Figure | None = None,
) -> list[Round]:
    """The logarithms of the deciding figure, or of ``figure``, in each of these runs that has a
    valid trial; smaller is better."""
    rounds: dict[int, dict[str, float]] = {}
    for level, runs in counted_runs(cells).items():
        if (level.rate, level.connections) != (track.rate, track.connections):
            continue
        for run, cell in runs.items():
            value = _logarithm(cell, figure or track.figure)
            if level.server in servers and run in of_runs and value is not None:
                rounds.setdefault(run, {})[level.server] = value
    return [rounds[run] for run in sorted(rounds)]


def _logarithm(cell: CellResult, figure: str) -> float | None:
    value = figure_of(cell, figure)
    if value is None:
        return None
    if not 0 < value < math.inf:
        return math.inf
    return -math.log(value) if figure == GOODPUT else math.log(value)


def tracks_of(cells: Sequence[CellResult]) -> dict[Track, tuple[str, ...]]:
    """Every measured track with its servers."""
    tracks: dict[Track, dict[str, None]] = {}
    for cell in cells:
        track = Track(cell.rate, cell.connections, cell.app)
        tracks.setdefault(track, {})[server_of(cell)] = None
    return {track: tuple(servers) for track, servers in tracks.items()}


def races(cells: Sequence[CellResult], stages: Stages) -> tuple[Race, ...]:
    """``races`` of summary.json."""
    return tuple(
        race_document(track, race_state(track, servers, cells, stages))
        for track, servers in tracks_of(cells).items()
        if len(servers) > 1
    )


def race_document(track: Track, state: RaceState) -> Race:
    """A race as an entry of ``races``."""
    return Race(
        rate=track.rate,
        connections=track.connections,
        app=track.app,
        outcome=state.outcome,
        contenders=state.contenders,
        dropped_out=tuple(
            RaceDropout(
                server=drop.server,
                rounds=drop.after_round,
                behind=drop.behind,
                factor=drop.factor,
                in_qualifying=drop.in_qualifying,
            )
            for drop in state.dropped
        ),
        margin=state.margin,
        rounds_left=state.rounds_left,
    )


def race_comparisons(cells: Sequence[CellResult], stages: Stages) -> tuple[Comparison, ...]:
    """``comparisons`` of a race: p values and intervals are valid although the race was analyzed
    after every round and may have stopped early. Qualifying trials do not count."""
    raced = [cell for cell in cells if cell.run > stages.qualifying]
    return tuple(
        comparison
        for track, servers in tracks_of(raced).items()
        for comparison in _of_track(track, servers, raced, stages)
    )


def _of_track(
    track: Track, servers: Sequence[str], cells: Sequence[CellResult], stages: Stages
) -> list[Comparison]:
    of_runs, rules = range(stages.qualifying + 1, stages.runs + 1), stages.rules
    rounds = rounds_of(track, servers, cells, of_runs)
    others = [figure for figure in JUDGED if figure != track.figure]
    other_effects = {
        figure: pair_effects(servers, rounds_of(track, servers, cells, of_runs, figure), rules)
        for figure in others
    }

    comparisons = []
    for both, effect in race_effects(servers, rounds, rules).items():
        shared = len(differences(*both, rounds))
        entry = _comparison((track, track.figure), both, effect, shared, cells)
        known = [
            _comparison((track, figure), both, effects[both], shared, cells)
            for figure, effects in other_effects.items()
        ]
        comparisons.append(replace(entry, others=compared_figures(known)))
    return comparisons


def _comparison(
    what: tuple[Track, Figure],
    both: tuple[str, str],
    adjusted: RaceEffect | None,
    shared: int,
    cells: Sequence[CellResult],
) -> Comparison:
    """The comparison of two servers by one figure in ``shared`` common rounds."""
    track, figure = what
    one, other = both
    kinds = kinds_of(cells)
    effect = adjusted.effect if adjusted is not None else None
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
    return comparison_of(pair, figure, adjusted.p_adjusted if adjusted is not None else None)


def race_at(races: Sequence[Race] | None, level: RankingLevel) -> Race | None:
    """The race at this level."""
    place = (level.rate, level.connections, level.app)
    of_level = [one for one in races or () if (one.rate, one.connections, one.app) == place]
    return of_level[0] if of_level else None


def ranked_by_race(level: RankingLevel, race: Race) -> RankingLevel:
    """Contenders first, then the servers that fell behind, the last to drop out first; contenders
    without a winner are tied. Servers that missed an objective or failed keep their order, because
    when they dropped out says nothing about them."""
    behind = [drop.server for drop in reversed(race.dropped_out) if drop.factor is not None]
    order = [*race.contenders, *behind]
    places = {name: place for place, name in enumerate(order)}
    tied = () if race.outcome == "winner" else race.contenders

    def key(entry: RankingEntry) -> tuple[bool, int]:
        is_ranked = entry.status == "ranked"
        return not is_ranked, places.get(entry.label, len(places)) if is_ranked else 0

    entries = sorted(level.entries, key=key)
    names = [entry.label for entry in entries if entry.status == "ranked" and entry.label in tied]
    return replace(
        level,
        entries=tuple(
            replace(
                entry,
                tied_with=tuple(name for name in names if name != entry.label)
                if entry.label in names
                else (),
                undecided_with=(),
            )
            for entry in entries
        ),
    )
