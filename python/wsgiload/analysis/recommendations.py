"""The recommendations of a summary: one for each app, or the reason why there is none. After a race
with an objective, the leanest configuration that meets it at the highest rate. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from wsgiload.analysis.objective import Objective
from wsgiload.analysis.objective_races import Contender, contenders_of, objective_states
from wsgiload.analysis.races import Track
from wsgiload.analysis.recommend import Entry, as_lean, best_so_far, by_app, refusal, shown_quantile
from wsgiload.documents.answer import NoRecommendation, Recommendation, RecommendedConfiguration
from wsgiload.documents.cell_result import CellResult, server_of
from wsgiload.documents.summary import ExperimentFacts
from wsgiload.experiment.plan import AROUND_A_LAUNCH_S
from wsgiload.experiment.settings import MAX_ROUNDS
from wsgiload.procedures.race import FIELD, ObjectiveState
from wsgiload.statistics.effect import MIN_RUNS

LOOSER = "use lower --rates, or a looser objective"
QUIETER = "measure on an idle machine"


def recommendations(
    entries: Sequence[Entry],
    judge: Callable[[Sequence[Entry]], RecommendedConfiguration | NoRecommendation],
    objective: Sequence[str],
) -> tuple[Recommendation, ...]:
    """The result of ``judge`` for the entries of each app: cells of a summary, or entries of a
    capacity document."""
    return tuple(
        _recommendation(app, tuple(objective), judge(of_app))
        for app, of_app in by_app(entries).items()
    )


def _recommendation(
    app: str | None, objective: tuple[str, ...], result: RecommendedConfiguration | NoRecommendation
) -> Recommendation:
    return Recommendation(
        app=app,
        objective=objective,
        recommended=result if isinstance(result, RecommendedConfiguration) else None,
        no_recommendation=result if isinstance(result, NoRecommendation) else None,
    )


def recommend_raced(
    cells: Sequence[CellResult], facts: ExperimentFacts, objective: Objective
) -> RecommendedConfiguration | NoRecommendation:
    """A recommendation from the cells of one app. If a rate is still undecided, a lower one may be
    decided."""
    states = objective_states(cells, objective, facts)
    higher = None
    for track, state in states.items():
        measured = _measured(track, state, cells, facts, objective)
        if meeting := [one for one in measured if one.meets_objective]:
            return replace(
                _recommended(meeting, objective), needs=_doubt((track, state), higher, cells, facts)
            )
        higher = track, state
    measured_rates = {cell.rate for cell in cells}
    lowest = min((cell.rate or 0.0 for cell in cells), default=0.0)
    has_lower = any(
        state.outcome != "failed" and (track.rate or 0.0) < lowest
        for track, state in states.items()
    )
    # What a longer budget can decide comes first.
    for track, state in sorted(states.items(), key=lambda one: one[1].is_decided):
        is_open = state.outcome == "undecided" and not (state.is_final and has_lower)
        if is_open and track.rate in measured_rates:
            measured = _measured(track, state, cells, facts, objective)
            return _open(track, state, (cells, measured), facts, objective)
    if not has_lower and all(cell.failure for cell in cells):
        return _all_failed(cells)
    why = f"no configuration meets {' and '.join(objective.texts)} at {lowest:,.10g}/s"
    best = best_so_far(cells, objective)
    if has_lower:
        minutes = math.ceil(2 * (facts.budget_s or 0.0) / 60)
        fix = f"use --budget {minutes}m, or lower --rates"
        return refusal(f"{why}, and lower rates were not measured{best}", fix)
    return refusal(f"{why}{best}", LOOSER, is_missed=True)


def _all_failed(cells: Sequence[CellResult]) -> NoRecommendation:
    failures = [f"{server_of(cell)}: {cell.failure.message}" for cell in cells if cell.failure]
    why = f"every trial failed, the first of {failures[0]}"
    return refusal(why, "resolve the failures listed below", is_missed=True)


def _measured(
    track: Track,
    state: ObjectiveState,
    cells: Sequence[CellResult],
    facts: ExperimentFacts,
    objective: Objective,
) -> list[Contender]:
    # Also those of configurations that dropped out, whose variance counts as in the race.
    deciding = [cell for cell in cells if cell.rate == track.rate and cell.run > 1]
    return contenders_of(state.contenders, deciding, objective, facts.runs)


def _recommended(meeting: Sequence[Contender], objective: Objective) -> RecommendedConfiguration:
    first, order = meeting[0], [(one.record, one.at) for one in meeting]
    quantile = shown_quantile(objective.thresholds)
    disturbed = [one for one in first.judgements if one.disturbance is not None]
    return RecommendedConfiguration(
        server=first.record.server,
        rate_per_s=first.at.rate_per_s,
        figure=quantile.figure if quantile is not None else "error_rate",
        estimate=first.at.centre,
        interval_95=first.at.interval,
        runs=first.at.runs,
        disturbed=len(disturbed),
        memory=first.record.memory,
        runner_up=None,
        tied=as_lean(order),
        min_requests_beyond=first.at.min_requests_beyond,
        also_meets=tuple(one.record.server for one in meeting[1:]),
        cpu=first.at.cpu,
    )


def _doubt(
    at: tuple[Track, ObjectiveState],
    higher: tuple[Track, ObjectiveState] | None,
    cells: Sequence[CellResult],
    facts: ExperimentFacts,
) -> str | None:
    """What is needed if the next higher rate, or a leaner configuration, was not decided."""
    if higher is not None and not higher[1].is_decided:
        track, above = higher
        rivals = len(above.contenders)
        longer = _longer(rivals + MIN_RUNS * min(FIELD, rivals), track, cells, facts)
        return f"{longer or QUIETER}, because {track.rate:,.10g}/s was not decided"
    track, state = at
    if state.outcome == "winner":
        return None
    longer = _longer(MIN_RUNS * len(state.contenders), track, cells, facts)
    fix = QUIETER if state.is_final or longer is None else longer
    return f"{fix}, because {state.contenders[0]} is leaner and not decided"


def _open(
    track: Track,
    state: ObjectiveState,
    trials: tuple[Sequence[CellResult], Sequence[Contender]],
    facts: ExperimentFacts,
    objective: Objective,
) -> RecommendedConfiguration | NoRecommendation:
    """The leader and the budget for a conclusive result, if enough runs all met the objective;
    otherwise the reason why there is no recommendation."""
    cells, measured = trials
    leader = next((one for one in measured if one.record.server == state.contenders[0]), None)
    runs = leader.at.runs if leader is not None else 0
    further = max(MIN_RUNS - runs, 0) or runs
    longer = _longer(further * len(state.contenders), track, cells, facts)
    needs = LOOSER if state.is_final or longer is None else longer
    where = f"at {track.rate or 0.0:,.10g}/s"
    if leader is None:
        return refusal(
            f"the race ended after the first block {where}"
            f"{best_so_far([cell for cell in cells if cell.rate == track.rate], objective)}",
            needs,
        )

    met = sum(one.met is True for one in leader.judgements)
    if met == runs >= MIN_RUNS:
        needs = f"{needs}, because the runs vary too much for a conclusive result"
        return replace(_recommended([leader], objective), needs=needs)
    all_runs = f"all {runs} runs" if runs > 1 else "1 run"
    few = f"{all_runs} {where}, but {MIN_RUNS} runs are needed"
    outcome = few if met == runs else f"only {met} of {runs} runs {where}"
    return refusal(f"{leader.record.server} met the objective in {outcome}", needs)


def _longer(
    launches: int, track: Track, cells: Sequence[CellResult], facts: ExperimentFacts
) -> str | None:
    """The budget with this many further launches at a rate, or with more blocks if all that the
    budget allows were used; None if there are no more."""
    load_s = facts.warmup_s + facts.duration_s + (facts.cooldown_s or 0.0)
    launch_s = load_s + AROUND_A_LAUNCH_S
    needed_s = (facts.budget_s or 0.0) + launches * launch_s
    blocks = max((cell.run for cell in cells if cell.rate == track.rate), default=0)
    if blocks >= MAX_ROUNDS:
        return None
    if blocks >= facts.runs:
        of_field = min(FIELD, len(facts.servers)) * len(facts.rates or ())
        needed_s = max(needed_s, MAX_ROUNDS * of_field * launch_s)
    return f"use --budget {math.ceil(needed_s / 60)}m"
