"""How much sessions differ, learned from stored sweeps that repeat one another. Pure.

Sweeps repeat one another if host, plan, versions and the commit of the app are the same. An app
without a commit, or with uncommitted changes, may have changed, so its sweeps teach nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, variance

import msgspec

from wsgiload.analysis.aggregate import FIGURES, Figure, ServerLevel, counted_runs, figure_of
from wsgiload.documents.run_info import HostFacts
from wsgiload.documents.summary import ExperimentFacts, Summary
from wsgiload.statistics.sessions import Scatter, Spread, pooled, scatter_of, spread_of

# Parts of the plan that do not affect how a server was measured.
MAY_DIFFER = frozenset(
    {
        "name",
        "app_revision",
        "servers",
        "runs",
        "planned_blocks",
        "rates",
        "connections",
        "aggregate",
    }
)
# The host's properties that affect the figures most.
OF_HOST = ("machine", "cpu_model", "cpus", "available_cpus", "kernel")


@dataclass(frozen=True, slots=True)
class SessionCell:
    """A figure of a server at a load, with the versions that were measured, and for how long."""

    level: ServerLevel
    figure: Figure
    versions: tuple[str | float | None, ...]


@dataclass(frozen=True, slots=True)
class Session:
    """A stored sweep: the mean logarithm of each figure, with its squared error. Sessions with the
    same ``conditions`` repeat one another; None: nobody knows."""

    host: bytes
    conditions: bytes | None
    means: Mapping[SessionCell, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Learned:
    """The scatter between sessions: of the cells of one sweep, and of each figure on its host."""

    own: Mapping[tuple[ServerLevel, Figure], Scatter] = field(default_factory=dict)
    of_host: Mapping[Figure, Scatter] = field(default_factory=dict)

    def at(self, level: ServerLevel, figure: Figure) -> Spread:
        """The spread between sessions of a figure of a server at a load."""
        own = self.own.get((level, figure), Scatter())
        return spread_of(own, self.of_host.get(figure, Scatter()))


NOTHING_LEARNED = Learned()


def session_of(summary: Summary, host: HostFacts, *, is_bundled: bool) -> Session:
    """A stored sweep as a session. ``is_bundled``: its apps belong to wsgiload, whose version the
    host has."""
    facts = summary.experiment
    means: dict[SessionCell, tuple[float, float]] = {}
    for level, runs in counted_runs(summary.cells).items():
        cells = list(runs.values())
        versions = {(cell.version, cell.python, cell.app, cell.duration_s) for cell in cells}
        for figure in FIGURES if len(versions) == 1 else ():
            values = [figure_of(cell, figure) for cell in cells]
            known = [math.log(one) for one in values if one is not None and 0 < one < math.inf]
            if len(known) == len(values):
                error = variance(known) / len(known) if len(known) > 1 else 0.0
                means[SessionCell(level, figure, *versions)] = fmean(known), error

    revision = facts.app_revision
    is_known = is_bundled if revision is None else "+" not in revision
    # The longest slice of a race depends on its rates; each cell has its own.
    names = set(ExperimentFacts.__struct_fields__) - MAY_DIFFER - {"duration_s"}
    plan = [getattr(facts, name) for name in sorted(names)]
    of_host = msgspec.json.encode([getattr(host, name) for name in OF_HOST])
    conditions = msgspec.json.encode([revision, host.wsgiload, plan])
    return Session(of_host, conditions if is_known else None, means)


def learn(first: Session, others: Sequence[Session]) -> Learned:
    """What ``first`` and the other sessions on its host show. The session that is compared with it
    must not be among them: the difference in question would hide itself."""
    groups: dict[bytes, list[Session]] = {}
    for session in (first, *others):
        if session.conditions is not None and session.host == first.host:
            groups.setdefault(session.conditions, []).append(session)
    scatters = {conditions: _scatters(group) for conditions, group in groups.items()}
    own = scatters.get(first.conditions or b"", {})
    return Learned(
        {(cell.level, cell.figure): own[cell] for cell in first.means if cell in own},
        {
            figure: pooled(
                [
                    [one for cell, one in group.items() if cell.figure == figure]
                    for group in scatters.values()
                ]
            )
            for figure in FIGURES
        },
    )


def _scatters(group: Sequence[Session]) -> Mapping[SessionCell, Scatter]:
    by_cell: dict[SessionCell, list[tuple[float, float]]] = {}
    for session in group:
        for cell, mean in session.means.items():
            by_cell.setdefault(cell, []).append(mean)
    return {cell: scatter_of(means) for cell, means in by_cell.items()}
