"""Which configurations meet an objective, from the trials of a race: the leanest wins. Pure.

The first block drops configurations that clearly miss it, and selects the leanest and the fastest
of the others. Only the following blocks, which are independent of the selection, decide. A
configuration meets the objective if it does in every launch and the mean of each quantile is below
its threshold at whichever block the race stops: the error probability is divided equally between
the interim analyses and the field (``statistics.sequential``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from wsgiload.analysis.attempts import counted_attempts, is_discarded
from wsgiload.analysis.objective import NEAR_A_LIMIT, Judgement, Objective, is_unstable
from wsgiload.analysis.races import Track, tracks_of
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
from wsgiload.documents.summary import ExperimentFacts
from wsgiload.procedures.race import FIELD, Drop, ObjectiveState
from wsgiload.statistics.effect import MIN_RUNS, Interval
from wsgiload.statistics.sequential import mean_at_any_analysis

# In the first block, a single failure is not a miss yet.
MAX_FAILURES_AT_FIRST = 0.01
# If the goodput under a higher load was below this share of a rate, the configuration does not
# sustain that rate.
CAN_HOLD = 0.8
MAX_MISSES = 2

First = Literal["met", "near", "missed"]


@dataclass(frozen=True, slots=True)
class Contender:
    """One configuration after the first block."""

    record: SettingRecord
    at: AtRate
    judgements: tuple[Judgement, ...]
    meets_objective: bool

    @property
    def misses(self) -> int:
        """Runs that missed the objective, without disturbed ones near a limit, which the
        disturbance may have decided."""
        return sum(one.met is False and not one.is_doubtful for one in self.judgements)

    @property
    def can_meet(self) -> bool:
        """Whether no run missed the objective."""
        return all(one.met is not False for one in self.judgements)

    @property
    def is_rarely_missed(self) -> bool:
        """Whether fewer than half of the runs missed it."""
        return 2 * self.misses < len(self.judgements)


def objective_state(
    rate_per_s: float | None,
    servers: Sequence[str],
    cells: Sequence[CellResult],
    objective: Objective,
    blocks: int,
) -> ObjectiveState:
    """The state of the race at one rate, of at most ``blocks``: the winner is the leanest
    configuration that meets the objective; if all failed, there is none."""
    here = [cell for cell in cells if cell.rate == rate_per_s and server_of(cell) in servers]
    candidates = _candidates(rate_per_s or 0.0, servers, cells, objective)
    first = _counted_by_server(cell for cell in here if cell.run == 1)
    if not first:
        return ObjectiveState("undecided" if candidates else "failed", tuple(candidates))

    field, drops = _selected(candidates, first, objective)
    deciding = [cell for cell in here if cell.run > 1 and server_of(cell) in field]
    state = _raced(field, deciding, objective, blocks)
    return replace(state, dropped=(*drops, *state.dropped))


def _candidates(
    rate_per_s: float, servers: Sequence[str], cells: Sequence[CellResult], objective: Objective
) -> list[str]:
    """The servers that were measured at this rate, and those for which no other rate showed that
    they cannot meet the objective at this one."""
    hopeless, measured = set[str](), set[str]()
    for cell in cells:
        is_hopeless = False
        if cell.rate == rate_per_s:
            measured.add(server_of(cell))
        elif (cell.rate or 0.0) < rate_per_s:
            is_hopeless = _judge_first(cell, objective) == "missed"
        else:
            goodput_per_s = cell.rate_result.goodput_per_s if cell.rate_result is not None else None
            is_too_slow = (goodput_per_s or 0.0) < CAN_HOLD * rate_per_s
            is_hopeless = is_too_slow and not is_discarded(cell)
        if is_hopeless:
            hopeless.add(server_of(cell))
    return [name for name in servers if name in measured or name not in hopeless]


def _counted_by_server(cells: Iterable[CellResult]) -> dict[str, CellResult]:
    return {server_of(cell): cell for cell in counted_attempts(list(cells))}


# --- the first block


def _selected(
    candidates: Sequence[str], first: Mapping[str, CellResult], objective: Objective
) -> tuple[list[str], list[Drop]]:
    """The leanest and the fastest of the configurations that may meet the objective: the leanest is
    recommended, and the fastest is the most certain to meet it."""
    results = {
        name: _judge_first(first[name], objective) if name in first else "near"
        for name in candidates
    }
    records = {name: _record_of(cell, objective) for name, cell in first.items()}
    ordered: list[str] = []
    for result in ("met", "near"):
        known = [name for name in candidates if results[name] == result and name in records]
        ordered += _lean_and_fast([records[name] for name in known])
        ordered += [name for name in candidates if results[name] == result and name not in records]

    field = ordered[:FIELD]
    drops = [
        Drop(name, 1, None if results[name] == "missed" else field[0])
        for name in candidates
        if name not in field
    ]
    return field, drops


def _judge_first(cell: CellResult, objective: Objective) -> First:
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
        limit = max(limit, MAX_FAILURES_AT_FIRST)
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


# --- the other blocks


def contenders_of(
    field: Sequence[str], deciding: Sequence[CellResult], objective: Objective, blocks: int
) -> list[Contender]:
    """The configurations that were measured after the first block, the leanest first."""
    analyses = FIELD * max(1, blocks - MIN_RUNS)
    contenders: dict[str, Contender] = {}
    runs: dict[str, list[CellResult]] = {}
    for cell in counted_attempts(deciding):
        runs.setdefault(server_of(cell), []).append(cell)
    for record in setting_records(deciding, objective):
        name = record.server
        judgements = tuple(judge_run(cell, objective) for cell in runs[name])
        means = {
            one.figure: _mean(one, name, runs, analyses)
            for one in objective.thresholds
            if one.figure in QUANTILES
        }
        is_enough = sum(one.met is not None for one in judgements) >= MIN_RUNS
        met = is_enough and all(one.met for one in judgements if one.met is not None)
        # One-sided at 5 %: only a mean that is too high matters.
        within = all(
            (mean := means[one.figure]) and mean.mean + mean.half_90 <= math.log(one.limit)
            for one in objective.thresholds
            if one.figure in means
        )
        quantile = shown_quantile(objective.thresholds)
        at = _with_interval(record.at[0], means[quantile.figure] if quantile else None)
        contenders[name] = Contender(record, at, judgements, met and within)
    order = lean_first([(one.record, one.at) for one in contenders.values()])
    return [contenders[record.server] for record, _ in order if record.server in field]


def _mean(
    quantile: Threshold, name: str, runs: Mapping[str, Sequence[CellResult]], analyses: int
) -> Interval | None:
    """The mean log quantile of a configuration, with intervals that are valid at whichever block
    the race stops; None unless it is known in every run."""
    logs = {
        server: [math.log(value) for value in quantiles_ns(cells, quantile)]
        for server, cells in runs.items()
    }
    own = logs.pop(name)
    if len(own) < len(runs[name]):
        return None
    return mean_at_any_analysis(own, analyses, list(logs.values()))


def _with_interval(at: AtRate, mean: Interval | None) -> AtRate:
    if mean is None:
        return replace(at, interval=None)
    low, high = mean.mean - mean.half_95, mean.mean + mean.half_95
    return replace(at, centre=math.exp(mean.mean), interval=(math.exp(low), math.exp(high)))


def _raced(
    field: Sequence[str], deciding: Sequence[CellResult], objective: Objective, blocks: int
) -> ObjectiveState:
    """Decided once the leanest of those that never missed meets the objective: nothing leaner can
    win."""
    if not field:
        return ObjectiveState("failed", ())
    measured = contenders_of(field, deciding, objective, blocks)
    misses = {one.record.server: one.misses for one in measured}
    fewest = min(misses.get(name, 0) for name in field)
    if fewest >= MAX_MISSES:
        return ObjectiveState("failed", (), tuple(_drop(name, deciding) for name in field))

    order = [one.record.server for one in measured]
    order += [name for name in field if name not in order]
    remaining = [name for name in order if misses.get(name, 0) == fewest]
    drops = tuple(_drop(name, deciding) for name in order if name not in remaining)
    missed = {one.record.server for one in measured if not one.can_meet}
    meeting = {one.record.server for one in measured if one.meets_objective}
    outcome: Literal["winner", "undecided"] = "winner" if remaining[0] in meeting else "undecided"
    can_meet = [name for name in remaining if name not in missed]
    # Without any, a second miss in the next block may still be a certain one.
    is_final = can_meet[0] in meeting if can_meet else any(one.is_rarely_missed for one in measured)
    return ObjectiveState(outcome, tuple(remaining), drops, bool(meeting), is_final)


def _drop(name: str, deciding: Sequence[CellResult]) -> Drop:
    return Drop(name, 1 + len({cell.run for cell in deciding if server_of(cell) == name}))


def objective_states(
    cells: Sequence[CellResult], objective: Objective, facts: ExperimentFacts
) -> dict[Track, ObjectiveState]:
    """The state at every planned rate, the highest first. All planned configurations of one app
    compete, including those that were not reached."""
    tracks = tracks_of(cells)
    servers: dict[str | None, dict[str, None]] = {}
    for track, names in tracks.items():
        servers.setdefault(track.app, {}).update(dict.fromkeys(names))
    if len(servers) == 1:
        servers = {app: dict.fromkeys(facts.servers) for app in servers}
    planned = [Track(rate, None, app) for rate in facts.rates or () for app in servers]
    return {
        track: objective_state(track.rate, tuple(servers[track.app]), cells, objective, facts.runs)
        for track in sorted(
            {*tracks, *planned}, key=lambda one: (-(one.rate or 0.0), one.app or "")
        )
    }
