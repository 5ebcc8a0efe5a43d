"""Which configurations meet an objective, from the trials of a race: the leanest wins. Pure.

Short trials drop configurations that clearly miss it. The leanest and the fastest of the others are
measured in full rounds, which alone decide. A configuration meets the objective if every full run
does and the mean of each quantile is below its threshold at whichever round the race stops: the
error probability is divided equally between the interim analyses and the field
(``statistics.sequential``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from wsgiload.analysis.attempts import counted_attempts, is_discarded
from wsgiload.analysis.objective import NEAR_A_LIMIT, Judgement, Objective, is_unstable
from wsgiload.analysis.races import Stages, Track, tracks_of
from wsgiload.analysis.recommend import (
    AtRate,
    RecordAtRate,
    SettingRecord,
    judge_run,
    lean_first,
    quantiles_ns,
    setting_records,
    shown_quantile,
)
from wsgiload.analysis.threshold import QUANTILES, Threshold
from wsgiload.documents.cell_result import CellResult, server_of
from wsgiload.statistics.effect import MIN_RUNS
from wsgiload.statistics.race import Drop, Outcome, RaceState
from wsgiload.statistics.sequential import mean_at_any_analysis

# In a short trial, a single failure is not a miss yet.
MAX_FAILURES_IN_SHORT_TRIAL = 0.01
# If the goodput under a higher load was below this share of a rate, the configuration does not
# sustain that rate.
CAN_HOLD = 0.8
MAX_MISSES = 2

Short = Literal["met", "near", "missed"]


@dataclass(frozen=True, slots=True)
class Contender:
    """One configuration in the full rounds."""

    record: SettingRecord
    at: AtRate
    judgements: tuple[Judgement, ...]
    meets_objective: bool

    @property
    def misses(self) -> int:
        """Runs that missed the objective, without disturbed ones near a limit, which the
        disturbance may have decided."""
        return sum(one.met is False and not one.is_doubtful for one in self.judgements)


def objective_state(
    track: Track,
    servers: Sequence[str],
    cells: Sequence[CellResult],
    stages: Stages,
    objective: Objective,
    before_run: int | None = None,
) -> RaceState:
    """The state of the race at one rate: the winner is the leanest configuration that meets the
    objective; if all failed, there is none. Uses only the runs before ``before_run``, if given."""
    here = [
        cell
        for cell in cells
        if (cell.rate, cell.connections) == (track.rate, track.connections)
        and server_of(cell) in servers
        and (before_run is None or cell.run < before_run)
    ]
    candidates = _candidates(track, servers, cells)
    short = _counted_by_server(cell for cell in here if cell.run <= stages.qualifying)
    if not short:
        return RaceState("undecided" if candidates else "failed", tuple(candidates), ())

    field, drops = _qualified(candidates, short, stages, objective)
    full = [cell for cell in here if cell.run > stages.qualifying and server_of(cell) in field]
    state = _raced(field, full, stages, objective)
    return replace(state, dropped=(*drops, *state.dropped))


def _candidates(track: Track, servers: Sequence[str], cells: Sequence[CellResult]) -> list[str]:
    """The servers without those that showed at a higher rate that they cannot serve this one."""
    hopeless = set()
    for cell in cells:
        if cell.app == track.app and (cell.rate or 0.0) > (track.rate or 0.0):
            goodput_per_s = cell.rate_result.goodput_per_s if cell.rate_result is not None else None
            if (goodput_per_s or 0.0) < CAN_HOLD * (track.rate or 0.0) and not is_discarded(cell):
                hopeless.add(server_of(cell))
    return [name for name in servers if name not in hopeless]


def _counted_by_server(cells: Iterable[CellResult]) -> dict[str, CellResult]:
    return {server_of(cell): cell for cell in counted_attempts(list(cells))}


# --- the short trials


def _qualified(
    candidates: Sequence[str],
    short: Mapping[str, CellResult],
    stages: Stages,
    objective: Objective,
) -> tuple[list[str], list[Drop]]:
    """The leanest and the fastest of the configurations that may meet the objective: the leanest is
    recommended, and the fastest is the most certain to meet it."""
    results = {
        name: _judge_short(short[name], objective) if name in short else "near"
        for name in candidates
    }
    records = {name: _record_of(cell, objective) for name, cell in short.items()}
    ordered: list[str] = []
    for result in ("met", "near"):
        known = [name for name in candidates if results[name] == result and name in records]
        ordered += _lean_and_fast([records[name] for name in known])
        ordered += [name for name in candidates if results[name] == result and name not in records]

    field = ordered[: stages.field]
    drops = [
        _drop_early(name, stages.qualifying, None if results[name] == "missed" else field[0])
        for name in candidates
        if name not in field
    ]
    return field, drops


def _drop_early(name: str, rounds: int, leaner: str | None) -> Drop:
    """A configuration that missed the objective, or for which others that may meet it are leaner or
    faster."""
    return Drop(name, rounds, leaner, None, in_qualifying=True)


def _judge_short(cell: CellResult, objective: Objective) -> Short:
    """A miss is clear if it also exceeds limits that are wider by half, or if the server could not
    keep up. An invalid trial drops no server."""
    if is_discarded(cell) or cell.verdict is None:
        return "near"
    if cell.failure is not None or cell.verdict.status == "invalid":
        return "missed"
    if any(is_unstable(reason) for reason in cell.verdict.reasons):
        return "missed"
    if all(one.holds(cell) for one in objective.thresholds):
        return "met"
    return "near" if all(_wider(one).holds(cell) for one in objective.thresholds) else "missed"


def _wider(threshold: Threshold) -> Threshold:
    limit = threshold.limit * NEAR_A_LIMIT
    if threshold.figure not in QUANTILES:
        limit = max(limit, MAX_FAILURES_IN_SHORT_TRIAL)
    return replace(threshold, limit=limit)


def _record_of(cell: CellResult, objective: Objective) -> RecordAtRate:
    record = setting_records([cell], objective)[0]
    quantile = shown_quantile(objective.thresholds)
    values = quantiles_ns([cell], quantile) if quantile is not None else []
    return record, replace(record.at[0], centre=values[0] if values else None)


def _lean_and_fast(entries: Sequence[RecordAtRate]) -> list[str]:
    """The leanest and the fastest, alternately."""
    lean = [record.server for record, _ in lean_first(entries)]
    quickest = sorted(entries, key=lambda one: math.inf if one[1].centre is None else one[1].centre)
    pairs = zip(lean, (record.server for record, _ in quickest), strict=True)
    return list(dict.fromkeys(name for pair in pairs for name in pair))


# --- the full rounds


def contenders_of(
    field: Sequence[str], full: Sequence[CellResult], stages: Stages, objective: Objective
) -> list[Contender]:
    """The configurations that were measured in full rounds, the leanest first."""
    analyses = stages.analyses * max(1, stages.field)
    contenders: dict[str, Contender] = {}
    counted = counted_attempts(full)
    for record in setting_records(full, objective):
        runs = {cell.run: cell for cell in counted if server_of(cell) == record.server}
        judgements = tuple(judge_run(cell, objective) for cell in runs.values())
        at = _at_any_analysis(record.at[0], list(runs.values()), objective, analyses)
        met = all(one.met for one in judgements if one.met is not None)
        conclusive = sum(one.met is not None for one in judgements)
        is_enough = met and conclusive >= MIN_RUNS
        meets_objective = is_enough and _is_within(runs.values(), objective, analyses)
        contenders[record.server] = Contender(record, at, judgements, meets_objective)
    order = lean_first([(one.record, one.at) for one in contenders.values()])
    return [contenders[record.server] for record, _ in order if record.server in field]


def _at_any_analysis(
    at: AtRate, cells: Sequence[CellResult], objective: Objective, analyses: int
) -> AtRate:
    """With an interval that is valid at whichever round the race stops."""
    quantile = shown_quantile(objective.thresholds)
    values = quantiles_ns(cells, quantile) if quantile is not None else []
    interval = mean_at_any_analysis([math.log(value) for value in values], analyses)
    if interval is None or len(values) < len(cells):
        return replace(at, interval=None)
    low, high = interval.mean - interval.half_95, interval.mean + interval.half_95
    return replace(at, centre=math.exp(interval.mean), interval=(math.exp(low), math.exp(high)))


def _is_within(cells: Iterable[CellResult], objective: Objective, analyses: int) -> bool:
    runs = list(cells)
    for threshold in objective.thresholds:
        if threshold.figure in QUANTILES:
            values = [math.log(value) for value in quantiles_ns(runs, threshold)]
            interval = mean_at_any_analysis(values, analyses)
            # One-sided at 5 %: only a mean that is too high matters.
            if interval is None or interval.mean + interval.half_90 > math.log(threshold.limit):
                return False
    return True


def _raced(
    field: Sequence[str], full: Sequence[CellResult], stages: Stages, objective: Objective
) -> RaceState:
    """Decided once the leanest of those that never missed meets the objective: nothing leaner can
    win."""
    if not field:
        return RaceState("failed", (), ())
    measured = contenders_of(field, full, stages, objective)
    misses = {one.record.server: one.misses for one in measured}
    fewest = min(misses.get(name, 0) for name in field)
    if fewest >= MAX_MISSES:
        return RaceState("failed", (), tuple(_drop(name, full) for name in field))

    order = [one.record.server for one in measured]
    order += [name for name in field if name not in order]
    remaining = [name for name in order if misses.get(name, 0) == fewest]
    drops = tuple(_drop(name, full) for name in order if name not in remaining)
    meeting = {one.record.server for one in measured if one.meets_objective}
    outcome: Outcome = "winner" if remaining[0] in meeting else "undecided"
    return RaceState(outcome, tuple(remaining), drops)


def _drop(name: str, full: Sequence[CellResult]) -> Drop:
    return Drop(name, len({cell.run for cell in full if server_of(cell) == name}), None, None)


def objective_states(
    cells: Sequence[CellResult], stages: Stages, objective: Objective, planned: Sequence[str]
) -> dict[Track, RaceState]:
    """The state at every measured rate, the highest first. All planned configurations of one app
    compete, including those that were not reached."""
    tracks = tracks_of(cells)
    order = sorted(tracks, key=lambda track: -(track.rate or 0.0))
    servers: dict[str | None, dict[str, None]] = {}
    for track, names in tracks.items():
        servers.setdefault(track.app, {}).update(dict.fromkeys(names))
    if len(servers) == 1:
        servers = {app: dict.fromkeys(planned) for app in servers}
    return {
        track: objective_state(track, tuple(servers[track.app]), cells, stages, objective)
        for track in order
    }
