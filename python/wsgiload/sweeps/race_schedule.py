"""``--budget``: which cells of the plan are still worth their time.

The plan stays as it is, complete blocks in a stored order, and a race skips cells of it. Which ones
follows from the stored cells alone, so that an interrupted race goes on as it would have.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from wsgiload.analysis.aggregate import server_of
from wsgiload.analysis.races import Track, race_state
from wsgiload.catalogue.names import ServerVariant
from wsgiload.documents.summary import CellResult
from wsgiload.experiment.estimate import experiment_s, longest_s
from wsgiload.experiment.plan import Cell, Experiment
from wsgiload.statistics.race import Drop, RaceState, Rules
from wsgiload.units import NS_PER_S

# What the page takes after the last trial, on a busy host.
REPORT_S = 15.0


@dataclass(slots=True)
class RaceSchedule:
    """A race under way, within its budget."""

    experiment: Experiment
    # The servers that compete with each other, by the app that they serve.
    rivals: Mapping[str | None, Sequence[str]]
    budget_ns: int
    began_s: float
    # What the trials before an interrupt took, about.
    spent_s: float = 0.0
    # The longest that a trial took, with a server that starts or stops slowly.
    slowest_s: float = 0.0
    clock_s: Callable[[], float] = time.monotonic
    _states: dict[tuple[Track, int], RaceState] = field(default_factory=dict)
    _told: set[tuple[Track, str]] = field(default_factory=set)

    def track(self, cell: Cell) -> Track:
        """Where this cell races."""
        app = next(app for app, servers in self.rivals.items() if cell.server in servers)
        return Track(cell.level.rate_per_s, cell.level.connections, app)

    def state(self, cell: Cell, cells: Sequence[CellResult]) -> RaceState:
        """How the race of this cell stands before its round, whose earlier ones are complete."""
        track = self.track(cell)
        place = (track, cell.run)
        if place not in self._states:
            servers, rules = self.rivals[track.app], Rules(self.experiment.runs)
            self._states[place] = race_state(track, servers, cells, rules, before_run=cell.run)
        return self._states[place]

    def wants(self, cell: Cell, cells: Sequence[CellResult]) -> bool:
        """Whether the cell could still change what is concluded."""
        state = self.state(cell, cells)
        return not state.is_decided and cell.server in state.contenders

    def left_s(self) -> float:
        """Of the budget."""
        return self.budget_ns / NS_PER_S - self.spent_s - (self.clock_s() - self.began_s)

    def fits(self, cell: Cell) -> bool:
        """Whether a trial ends within the budget even on a host that is never quiet."""
        expected_s = max(self.slowest_s, longest_s([cell], self.experiment))
        return expected_s + REPORT_S <= self.left_s()

    def took(self, trial_s: float) -> None:
        """What a trial took."""
        self.slowest_s = max(self.slowest_s, trial_s)

    def news(self, cell: Cell, cells: Sequence[CellResult]) -> list[str]:
        """Who dropped out, and why, as far as it was not told."""
        track = self.track(cell)
        drops = self.state(cell, cells).dropped
        new = [drop for drop in drops if (track, drop.server) not in self._told]
        self._told |= {(track, drop.server) for drop in new}
        return [f"{cell.level.text}: {drop_words(drop)}" for drop in new]


def race_schedule(
    experiment: Experiment,
    found: Mapping[str, ServerVariant],
    cells: Sequence[CellResult],
    began_s: float,
) -> RaceSchedule | None:
    """Of an experiment with a budget, of which these cells were measured before; else None. What
    came before the first trial is part of the budget."""
    if experiment.budget_ns is None:
        return None
    rivals: dict[str | None, list[str]] = {}
    for server, variant in found.items():
        rivals.setdefault(experiment.served(variant.app).app, []).append(server)
    levels = {(level.rate_per_s, level.connections): level for level in experiment.levels}
    made = [Cell(server_of(one), levels[one.rate, one.connections], one.run, 0) for one in cells]
    spent_s = experiment_s(made, experiment)
    return RaceSchedule(experiment, rivals, experiment.budget_ns, began_s, spent_s)


def drop_words(drop: Drop) -> str:
    """``waitress dropped out after 3 rounds: 1.62× behind gunicorn-gthread``."""
    why = "it failed" if drop.factor is None else f"{drop.factor:.2f}× behind {drop.behind}"
    return f"{drop.server} dropped out after {drop.after_round} rounds: {why}"
