"""``--budget`` with ``--slo``: decides which cells of the plan are still worth measuring.

The plan still consists of complete blocks in a stored order; a race skips some of the cells. The
decision depends only on the stored cells, so an interrupted race continues as it would have without
the interrupt.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from wsgiload.analysis.objective import parse_objective
from wsgiload.analysis.objective_races import objective_state
from wsgiload.analysis.races import Stages, Track
from wsgiload.catalogue.names import ServerVariant
from wsgiload.documents.cell_result import CellResult, server_of
from wsgiload.experiment.estimate import REPORT_S, experiment_s, longest_s
from wsgiload.experiment.plan import Cell, Experiment
from wsgiload.statistics.race import Drop, RaceState
from wsgiload.sweeps.outlook import race_words
from wsgiload.units import NS_PER_S


@dataclass(slots=True)
class RaceSchedule:
    """A race in progress, within its budget."""

    experiment: Experiment
    # The servers that compete with each other, by app.
    rivals: Mapping[str | None, Sequence[str]]
    budget_ns: int
    began_s: float
    # The approximate time of the trials before an interrupt.
    spent_s: float = 0.0
    # The longest duration of a trial, including start and stop of the server; True: of short
    # trials, False: of full ones.
    slowest_s: dict[bool, float] = field(default_factory=dict)
    clock_s: Callable[[], float] = time.monotonic
    _states: dict[tuple[Track, int], RaceState] = field(default_factory=dict)
    _reported: set[tuple[Track, str]] = field(default_factory=set)

    def track(self, cell: Cell) -> Track:
        """The track on which this cell races."""
        app = next(app for app, servers in self.rivals.items() if cell.server in servers)
        return Track(cell.level.rate_per_s, cell.level.connections, app)

    def state(self, cell: Cell, cells: Sequence[CellResult]) -> RaceState:
        """The state of this cell's race before its round; all earlier rounds are complete."""
        track = self.track(cell)
        place = (track, cell.run)
        if place not in self._states:
            self._states[place] = self._judge(track, cells, cell.run)
        return self._states[place]

    def _judge(self, track: Track, cells: Sequence[CellResult], before_run: int) -> RaceState:
        servers, stages = self.rivals[track.app], stages_of_plan(self.experiment)
        objective = parse_objective(self.experiment.slo)
        return objective_state(track, servers, cells, stages, objective, before_run)

    def wants(self, cell: Cell, cells: Sequence[CellResult]) -> bool:
        """Whether the cell could still change the conclusion."""
        if self._is_met_above(cell, cells):
            return False
        state = self.state(cell, cells)
        return not state.is_decided and cell.server in state.contenders

    def _is_met_above(self, cell: Cell, cells: Sequence[CellResult]) -> bool:
        """Whether the objective is met at a higher rate, whose rounds all come first."""
        track, last = self.track(cell), self.experiment.runs + 1
        above = [
            level
            for level in self.experiment.levels
            if (level.rate_per_s or 0.0) > (track.rate or 0.0)
        ]
        ends = [Cell(cell.server, level, last, cell.seed) for level in above]
        return any(self.state(end, cells).outcome == "winner" for end in ends)

    def left_s(self) -> float:
        """Remaining seconds of the budget."""
        return self.budget_ns / NS_PER_S - self.spent_s - (self.clock_s() - self.began_s)

    def fits(self, cell: Cell) -> bool:
        """Whether a trial ends within the budget even on a host that is never quiet."""
        slowest_s = self.slowest_s.get(self.experiment.is_qualifying(cell.run), 0.0)
        expected_s = max(slowest_s, longest_s([cell], self.experiment))
        return expected_s + REPORT_S <= self.left_s()

    def took(self, cell: Cell, trial_s: float) -> None:
        """Record the duration of a trial."""
        stage = self.experiment.is_qualifying(cell.run)
        self.slowest_s[stage] = max(self.slowest_s.get(stage, 0.0), trial_s)

    def standing(self, cell: Cell, cells: Sequence[CellResult]) -> str | None:
        """The standings of this cell's race; None before there is a leader."""
        state, first = self.state(cell, cells), self.experiment.qualifying
        if cell.run == 1 or state.leader is None:
            return None
        rounds = cell.run - 1 - (first.rounds if first is not None else 0)
        return race_words(state, max(0, rounds))

    def new_drops(self, cell: Cell, cells: Sequence[CellResult]) -> list[str]:
        """A line for each server that dropped out since the last call, with the reason."""
        track = self.track(cell)
        drops = self.state(cell, cells).dropped
        new = [drop for drop in drops if (track, drop.server) not in self._reported]
        self._reported |= {(track, drop.server) for drop in new}
        return drop_lines(cell.level.text, new, self.state(cell, cells).contenders)


def stages_of_plan(experiment: Experiment) -> Stages:
    """The rounds of the planned race."""
    first = experiment.qualifying
    if first is None:
        return Stages(experiment.runs)
    return Stages(experiment.runs, first.rounds, first.field)


def race_schedule(
    experiment: Experiment,
    variants: Mapping[str, ServerVariant],
    cells: Sequence[CellResult],
    began_s: float,
) -> RaceSchedule | None:
    """The schedule of an experiment with a budget, some of whose cells were measured before; None
    without a budget. The time before the first trial counts, too."""
    if experiment.budget_ns is None:
        return None
    rivals: dict[str | None, list[str]] = {}
    for server, variant in variants.items():
        rivals.setdefault(experiment.served(variant.app).app, []).append(server)
    levels = {(level.rate_per_s, level.connections): level for level in experiment.levels}
    earlier = [Cell(server_of(one), levels[one.rate, one.connections], one.run, 0) for one in cells]
    spent_s = experiment_s(earlier, experiment)
    return RaceSchedule(experiment, rivals, experiment.budget_ns, began_s, spent_s)


def drop_lines(level: str, drops: Sequence[Drop], remaining: Sequence[str]) -> list[str]:
    """One line for each server that dropped out of the race, and one for all that did not
    qualify."""
    early = [drop for drop in drops if drop.in_qualifying]
    late = [drop for drop in drops if not drop.in_qualifying]
    lines = [f"{level}: {drop_words(drop)}" for drop in late]
    if early:
        names = ", ".join(remaining) if remaining else "none"
        lines.insert(0, f"{level}: {len(early)} dropped out after short trials; remaining: {names}")
    return lines


def drop_words(drop: Drop) -> str:
    """``waitress dropped out after 3 rounds: it missed the objective``."""
    rounds = f"{drop.after_round} round{'' if drop.after_round == 1 else 's'}"
    return f"{drop.server} dropped out after {rounds}: it missed the objective"
