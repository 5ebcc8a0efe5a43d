"""Computes everything in summary.json that concerns several cells, from the cells alone.

Pure, so a report from an old run directory contains the figures that were printed at the time.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from wsgiload.analysis.aggregate import aggregate_cells
from wsgiload.analysis.attempts import counted_attempts, is_discarded, reason_of_repeat
from wsgiload.analysis.comparison import compare_servers
from wsgiload.analysis.objective import Objective, parse_objective
from wsgiload.analysis.objective_races import objective_states
from wsgiload.analysis.overload import overload_points
from wsgiload.analysis.power import power_points
from wsgiload.analysis.races import race_comparisons, race_document, races
from wsgiload.analysis.recommend import recommend
from wsgiload.analysis.recommend_raced import recommend_raced
from wsgiload.analysis.recommendations import recommendations
from wsgiload.documents.cell_result import CellResult, server_of
from wsgiload.documents.experiment_facts import ExperimentFacts
from wsgiload.documents.over_cells import Comparison, DiscardedTrial, ExperimentValidity, Race
from wsgiload.documents.recommendation import Recommendation
from wsgiload.documents.summary import Summary
from wsgiload.experiment.procedure import Method
from wsgiload.statistics.effect import MIN_RUNS

# Share of all trials; above it, the conditions were not those that the experiment was planned for.
MAX_DISCARDED_SHARE = 0.2


def analyse(summary: Summary, method: Method | None = None, slo: Sequence[str] = ()) -> Summary:
    """The summary with all conclusions recomputed by ``method`` and ``slo``; by default, those of
    the experiment."""
    facts = summary.experiment
    cells = _by_plan(summary.cells, facts.servers)
    chosen = method or facts.aggregate
    texts = slo or facts.slo or ()
    objective = parse_objective(texts) if texts else None

    of_sessions = bool(facts.sessions)
    return msgspec.structs.replace(
        summary,
        experiment=_with_choices(facts, chosen, objective),
        aggregates=aggregate_cells(cells, chosen),
        comparisons=_comparisons(cells, facts),
        races=_races(cells, facts, objective),
        overload=() if of_sessions else overload_points(cells),
        efficiency=power_points(cells),
        recommendations=_recommendations(cells, facts, objective),
        validity=judge_session(cells, facts.runs),
    )


def _comparisons(cells: Sequence[CellResult], facts: ExperimentFacts) -> tuple[Comparison, ...]:
    if facts.budget_s is not None:
        return race_comparisons(cells, facts)
    if facts.runs < MIN_RUNS:
        return ()
    return compare_servers(cells, of_sessions=bool(facts.sessions))


def _with_choices(
    facts: ExperimentFacts, method: Method, objective: Objective | None
) -> ExperimentFacts:
    slo = tuple(objective.texts) if objective is not None else None
    return msgspec.structs.replace(facts, aggregate=method, slo=slo)


def _recommendations(
    cells: Sequence[CellResult], facts: ExperimentFacts, objective: Objective | None
) -> tuple[Recommendation, ...]:
    """The recommended configuration for each app; empty without an objective."""
    if objective is None:
        return ()
    if _is_for_objective(facts, objective):
        return recommendations(
            cells, lambda of_app: recommend_raced(of_app, facts, objective), objective.texts
        )
    return recommendations(cells, lambda of_app: recommend(of_app, objective), objective.texts)


def _is_for_objective(facts: ExperimentFacts, objective: Objective | None) -> bool:
    """Whether a race was run to determine who meets an objective."""
    is_race = facts.budget_s is not None and facts.margin is None
    return objective is not None and is_race and facts.slo is not None


def _races(
    cells: Sequence[CellResult], facts: ExperimentFacts, objective: Objective | None
) -> tuple[Race, ...] | None:
    if facts.budget_s is None:
        return None
    if objective is None or not _is_for_objective(facts, objective):
        return races(cells, facts)
    states = objective_states(cells, objective, facts)
    return tuple(race_document(track, state) for track, state in states.items())


def _by_plan(cells: Sequence[CellResult], servers: Sequence[str]) -> list[CellResult]:
    """The cells in the order of the plan, which does not depend on the random order of the runs."""
    places = {server: place for place, server in enumerate(servers)}

    def key(cell: CellResult) -> tuple[float, float, int]:
        load = cell.rate if cell.rate is not None else cell.connections or 0
        return places.get(server_of(cell), len(places)), load, cell.run

    return sorted(cells, key=key)


def judge_session(cells: Sequence[CellResult], runs: int = MIN_RUNS) -> ExperimentValidity:
    """All trials that did not count, with their reasons. If more than a fifth of the trials of
    several runs was discarded, the experiment is invalid.

    The outcome never matters: a trial is discarded only if the generator, the host or the plan made
    it invalid.
    """
    counted = {cell.id for cell in counted_attempts(cells)}
    uncounted = [cell for cell in cells if is_discarded(cell) or cell.id not in counted]
    discarded = sum(is_discarded(cell) for cell in cells)
    is_invalid = runs > 1 and discarded > MAX_DISCARDED_SHARE * len(cells)
    return ExperimentValidity(
        status="invalid" if is_invalid else "valid",
        trials=len(cells),
        discarded=tuple(
            DiscardedTrial(id=cell.id, reason=reason_of_repeat(cell)) for cell in uncounted
        ),
    )
