"""Carries out the launches of a race, which ``procedures.race`` chooses; a resumed race replays its
stored launches."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wsgiload.analysis.objective import parse_objective
from wsgiload.analysis.objective_races import objective_state
from wsgiload.analysis.races import logarithm_of, rules_of
from wsgiload.documents.cell_result import CellResult
from wsgiload.experiment.plan import (
    AROUND_A_LAUNCH_S,
    Cell,
    Experiment,
    launches_s,
    levels_down,
    planned_blocks,
)
from wsgiload.loads.options import Level
from wsgiload.procedures.race import (
    Judge,
    Launch,
    ObjectiveState,
    Outcome,
    Plan,
    objective_race,
    race,
)
from wsgiload.statistics.leading import State


@dataclass(frozen=True, slots=True)
class NextLaunch:
    """The cells of the next launch, the state of the race before it, and the seconds left."""

    cells: tuple[Cell, ...]
    state: State | ObjectiveState
    left_s: float


# Measures the cells of a launch and returns their results; None: interrupted.
RunLaunch = Callable[[NextLaunch], Sequence[CellResult] | None]


def run_race(
    experiment: Experiment,
    order: Sequence[Cell],
    stored: Sequence[CellResult],
    run: RunLaunch,
    clock_s: Callable[[], float] = time.monotonic,
) -> State | ObjectiveState | None:
    """The final state of the race; None: interrupted. Launches of which every cell is stored are
    not repeated."""
    levels = levels_down(experiment)
    by_place = {(cell.run, cell.server, cell.level): cell for cell in order}
    known = {cell.id: cell for cell in stored}
    plan, measured = plan_of(experiment, order), list[CellResult]()
    judge = _judge(experiment, plan.order[0], measured)
    procedure = objective_race(plan, judge) if experiment.slo else race(plan)
    left_s = experiment.race_s
    try:
        launch = next(procedure)
        while True:
            places = [(launch.block, launch.server, levels[level]) for level in launch.levels]
            # In the random order of the plan, not by level.
            cells = tuple(sorted((by_place[one] for one in places), key=order.index))
            results = [known[cell.id] for cell in cells if cell.id in known]
            took_s = sum(map(planned_s, results)) + AROUND_A_LAUNCH_S if results else 0.0
            if len(results) < len(cells):
                began_s = clock_s()
                new = run(NextLaunch(cells, launch.state, left_s))
                if new is None:
                    return None
                results += new
                took_s += clock_s() - began_s
            measured += results
            left_s -= took_s
            launch = procedure.send(_outcome(launch, levels, results, took_s))
    except StopIteration as end:
        state: State | ObjectiveState = end.value
        return state


def _judge(experiment: Experiment, servers: Sequence[str], measured: Sequence[CellResult]) -> Judge:
    """What the launches so far say about an objective at a level, counted from the highest."""
    levels, names = levels_down(experiment), sorted(servers)

    def judge(level: int) -> ObjectiveState:
        rate_per_s, objective = levels[level].rate_per_s, parse_objective(experiment.slo)
        return objective_state(rate_per_s, names, measured, objective, experiment.runs)

    return judge


def plan_of(experiment: Experiment, order: Sequence[Cell]) -> Plan:
    """The planned blocks of a race."""
    blocks: dict[int, dict[str, None]] = {}
    for cell in order:
        blocks.setdefault(cell.run, {})[cell.server] = None
    servers = [tuple(block) for block in blocks.values()]
    return Plan(
        order=servers,
        levels=len(experiment.levels),
        budget_s=experiment.race_s,
        launch_s=launches_s(experiment),
        rules=rules_of(experiment.margin, planned_blocks(experiment, len(servers[0]))),
    )


def planned_s(result: CellResult) -> float:
    """The duration of a stored load, without its cool-down."""
    return (result.warmup_s or 0.0) + (result.duration_s or 0.0)


def _outcome(
    launch: Launch, levels: Sequence[Level], results: Sequence[CellResult], took_s: float
) -> Outcome:
    by_load = {Level(one.rate, one.connections): one for one in results}
    measured = {place: by_load.get(levels[place]) for place in launch.levels}
    figures = {at: None if one is None else logarithm_of(one) for at, one in measured.items()}
    return Outcome(figures, took_s)
