"""The race of the servers at each load, from the cells of a summary. Pure.

``statistics.race`` decides; this module says what a round is: the runs that stand, of servers that
serve the same app at the same load.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from wsgiload.analysis.aggregate import GOODPUT, Figure, Level, figure_of, server_of, standing
from wsgiload.analysis.comparison import Pair, comparison_of, kinds_of, of_rounds
from wsgiload.analysis.generator_delay import remains_slower
from wsgiload.documents.summary import (
    CellResult,
    Comparison,
    Race,
    RaceDrop,
    RankingEntry,
    RankingLevel,
)
from wsgiload.statistics.effect import FEWEST_RUNS, paired_effect
from wsgiload.statistics.race import RaceState, Rules, judge_race, race_effects
from wsgiload.statistics.sequential import Round, differences


@dataclass(frozen=True, slots=True)
class Track:
    """Where servers race: one load, one app."""

    rate: float | None
    connections: int | None
    app: str | None

    @property
    def figure(self) -> Figure:
        """What decides."""
        return GOODPUT if self.rate is None else "p99"


def race_state(
    track: Track,
    servers: Sequence[str],
    cells: Sequence[CellResult],
    rules: Rules,
    before_run: int | None = None,
) -> RaceState:
    """How the race on this track stands; by the runs before this one only, where one is given."""
    state = judge_race(servers, rounds_of(track, servers, cells, before_run), rules)
    if state.outcome != "winner" or len(state.contenders) == 1:
        return state

    earlier = [cell for cell in cells if before_run is None or cell.run < before_run]
    winner, rival = state.contenders[:2]
    is_open = _may_be_delay(track, (rival, winner), earlier)
    return dataclasses.replace(state, outcome="open") if is_open else state


def _may_be_delay(track: Track, both: tuple[str, str], cells: Sequence[CellResult]) -> bool:
    """Whether one of both looks slower only because the generator was late."""
    stand = standing(cells)
    first, second = (stand.get(Level(one, track.rate, track.connections), {}) for one in both)
    rounds = [(first[run], second[run]) for run in sorted(first.keys() & second.keys())]
    known = [
        (cells, logarithms)
        for cells in rounds
        if (logarithms := _finite_logarithms(cells, track.figure)) is not None
    ]
    if len(known) < FEWEST_RUNS:
        return False

    shared = ([cells[0] for cells, _ in known], [cells[1] for cells, _ in known])
    effect = paired_effect([one - other for _, (one, other) in known])
    return not remains_slower(effect, shared, track.figure, of_rounds)


def _finite_logarithms(
    cells: tuple[CellResult, CellResult], figure: str
) -> tuple[float, float] | None:
    one, other = (_logarithm(cell, figure) for cell in cells)
    if one is None or other is None or not math.isfinite(one + other):
        return None
    return one, other


def rounds_of(
    track: Track,
    servers: Sequence[str],
    cells: Sequence[CellResult],
    before_run: int | None = None,
) -> list[Round]:
    """The logarithms of each run in which something stands; smaller is better."""
    rounds: dict[int, dict[str, float]] = {}
    for level, runs in standing(cells).items():
        if (level.rate, level.connections) != (track.rate, track.connections):
            continue
        for run, cell in runs.items():
            value = _logarithm(cell, track.figure)
            is_earlier = before_run is None or run < before_run
            if level.server in servers and is_earlier and value is not None:
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
    """Every track on which something was measured, and who was measured there."""
    tracks: dict[Track, dict[str, None]] = {}
    for cell in cells:
        track = Track(cell.rate, cell.connections, cell.app)
        tracks.setdefault(track, {})[server_of(cell)] = None
    return {track: tuple(servers) for track, servers in tracks.items()}


def races(cells: Sequence[CellResult], most_rounds: int) -> tuple[Race, ...]:
    """``races`` of summary.json."""
    rules = Rules(most_rounds)
    states = [
        (track, race_state(track, servers, cells, rules))
        for track, servers in tracks_of(cells).items()
        if len(servers) > 1
    ]
    return tuple(
        Race(
            rate=track.rate,
            connections=track.connections,
            app=track.app,
            outcome=state.outcome,
            contenders=state.contenders,
            dropped=tuple(
                RaceDrop(
                    server=drop.server,
                    rounds=drop.after_round,
                    behind=drop.behind,
                    factor=drop.factor,
                )
                for drop in state.dropped
            ),
            margin=state.margin,
            rounds_left=state.rounds_left,
        )
        for track, state in states
    )


def race_comparisons(cells: Sequence[CellResult], most_rounds: int) -> tuple[Comparison, ...]:
    """``comparisons`` of a race: p values and intervals hold although somebody looked after every
    round and stopped."""
    rules = Rules(most_rounds)
    return tuple(
        comparison
        for track, servers in tracks_of(cells).items()
        for comparison in _of_track(track, servers, cells, rules)
    )


def _of_track(
    track: Track, servers: Sequence[str], cells: Sequence[CellResult], rules: Rules
) -> list[Comparison]:
    rounds = rounds_of(track, servers, cells)
    kinds = kinds_of(cells)
    found = []
    for (one, other), adjusted in race_effects(servers, rounds, rules).items():
        shared = len(differences(one, other, rounds))
        few = f"no inference possible from {shared} run{'' if shared == 1 else 's'}"
        effect = adjusted.effect if adjusted is not None else None
        if effect is not None and track.figure == GOODPUT:
            effect = effect.inverted()
        pair = Pair(
            first=one,
            second=other,
            level=Level(one, track.rate, track.connections),
            app=track.app,
            effect=effect,
            rounds=effect.runs if effect is not None else shared,
            is_same_server=kinds[one] == kinds[other],
            reason=few if effect is None else None,
            may_be_delay=effect is not None and _may_be_delay(track, (one, other), cells),
        )
        p_adjusted = adjusted.p_adjusted if adjusted is not None else None
        found.append(comparison_of(pair, track.figure, p_adjusted))
    return found


def race_at(found: Sequence[Race] | None, level: RankingLevel) -> Race | None:
    """The race at this level."""
    place = (level.rate, level.connections, level.app)
    of_level = [one for one in found or () if (one.rate, one.connections, one.app) == place]
    return of_level[0] if of_level else None


def ranked_by_race(level: RankingLevel, race: Race) -> RankingLevel:
    """Contenders first, then who dropped out last; contenders without a winner are tied."""
    order = [*race.contenders, *(drop.server for drop in reversed(race.dropped))]
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
            replace(entry, tied_with=tuple(name for name in names if name != entry.label))
            if entry.label in names
            else replace(entry, tied_with=())
            for entry in entries
        ),
    )
