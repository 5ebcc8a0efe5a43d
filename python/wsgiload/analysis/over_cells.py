"""Computes everything in summary.json that concerns several cells, from the cells alone.

Pure, so a report from an old run directory contains the figures that were printed at the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

import msgspec

from wsgiload.analysis.aggregate import GOODPUT, aggregate_cells, counted_runs, figure_of
from wsgiload.analysis.attempts import counted_attempts, is_discarded, reason_of_repeat
from wsgiload.analysis.comparison import compare_servers
from wsgiload.analysis.objective import Objective, parse_objective
from wsgiload.analysis.objective_races import objective_states
from wsgiload.analysis.overload import overload_points
from wsgiload.analysis.races import race_comparisons, race_document, races, tracks_of
from wsgiload.analysis.recommend import recommend
from wsgiload.analysis.recommendations import recommend_raced, recommendations
from wsgiload.documents.answer import Recommendation
from wsgiload.documents.cell_result import CellResult, server_of
from wsgiload.documents.over_cells import (
    Comparison,
    DiscardedTrial,
    Efficiency,
    EfficiencyPoint,
    ExperimentValidity,
    Race,
)
from wsgiload.documents.summary import ExperimentFacts, Summary
from wsgiload.experiment.procedure import Method
from wsgiload.statistics.effect import MIN_RUNS
from wsgiload.units import NS_PER_S

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
    states, measured = objective_states(cells, objective, facts), tracks_of(cells)
    return tuple(
        race_document(track, state) for track, state in states.items() if track in measured
    )


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


# The best rate must have a neighbor on either side.
MIN_RATES = 3
# With fewer correct responses, the mean would only describe the few requests that were served.
MIN_CORRECT = 0.99


def power_of(cell: CellResult) -> float | None:
    """Correct responses per second divided by their mean response time, in 1/s².

    0 if the server failed, or more than 1 % of the requests: a failure counts as infinitely slow.
    None: unknown.
    """
    goodput_per_s = figure_of(cell, GOODPUT)
    if goodput_per_s is None:
        return None

    outcomes = cell.outcomes
    if not goodput_per_s or outcomes is None or outcomes.ok < MIN_CORRECT * outcomes.scheduled:
        return 0.0

    times = cell.response_time_ns
    return goodput_per_s / (times.mean / NS_PER_S) if times is not None and times.mean else None


# Efficiency is Kleinrock's power: goodput divided by mean response time. Unlike a knee in a
# curve, its maximum does not depend on the scales of the axes; in an M/M/1 queue, it is at half
# of the capacity. L. Kleinrock, "Power and deterministic rules of thumb for probabilistic
# problems in computer communications", ICC 1979.
def power_points(cells: Sequence[CellResult]) -> tuple[Efficiency, ...]:
    """``efficiency`` of summary.json: the rate with the highest efficiency of each server that was
    measured at three or more rates."""
    by_server: dict[str, dict[float, dict[int, float]]] = {}
    for level, runs in counted_runs(cells).items():
        powers = {run: power for run, cell in runs.items() if (power := power_of(cell)) is not None}
        if level.rate is not None and powers:
            by_server.setdefault(level.server, {})[level.rate] = powers

    return tuple(
        _best_rate(server, dict(sorted(by_rate.items())))
        for server, by_rate in by_server.items()
        if len(by_rate) >= MIN_RATES
    )


def _best_rate(server: str, by_rate: Mapping[float, Mapping[int, float]]) -> Efficiency:
    rates = list(by_rate)
    medians = {rate: median(powers.values()) for rate, powers in by_rate.items()}

    peaks = [_peak(medians), *_peaks_of_rounds(by_rate)]
    lowest = rates.index(min(peaks))
    highest = rates.index(max(peaks))
    some_runs = "" if rates.index(peaks[0]) in (0, len(rates) - 1) else " in some runs"
    reason = _why_unknown(max(medians.values()), lowest == 0, highest == len(rates) - 1, some_runs)

    return Efficiency(
        server=server,
        rate=peaks[0] if reason is None else None,
        between=(rates[lowest - 1], rates[highest + 1]) if reason is None else None,
        points=tuple(
            EfficiencyPoint(rate=rate, efficiency_per_s2=power) for rate, power in medians.items()
        ),
        reason=reason,
    )


def _peak(powers: Mapping[float, float]) -> float:
    return max(powers, key=lambda rate: powers[rate])


def _peaks_of_rounds(by_rate: Mapping[float, Mapping[int, float]]) -> list[float]:
    """The rate with the highest efficiency in each run that is valid at every rate; their scatter
    shows the uncertainty."""
    complete = set.intersection(*(set(powers) for powers in by_rate.values()))
    return [_peak({rate: powers[run] for rate, powers in by_rate.items()}) for run in complete]


def _why_unknown(largest: float, is_lowest: bool, is_highest: bool, some_runs: str) -> str | None:
    if not largest:
        return f"fewer than {MIN_CORRECT * 100:.0f} % correct responses at every rate"
    if is_lowest and is_highest:
        return (
            "efficiency peaks at the lowest measured rate in some runs and at the highest in "
            "others. Use more rates"
        )
    if is_lowest or is_highest:
        end, other = ("lowest", "lower") if is_lowest else ("highest", "higher")
        return (
            f"efficiency peaks at the {end} measured rate{some_runs}. Measure {other} rates as well"
        )
    return None
