"""``--intervene cpu``: runs cells again in pairs, with their CPU limit and with it lifted.

This module decides the order of the runs; ``attribution.intervention`` evaluates them.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace

from wsgiload.attribution.intervention import USUAL_PAIRS, Half, Pair, Trial, first_halves
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.over_cells import InterventionResult
from wsgiload.errors import UsageError
from wsgiload.experiment.plan import Cell, Experiment
from wsgiload.host.cpus import CpuPlan
from wsgiload.limits import Limits
from wsgiload.results.record import Setting

# Runs a cell with or without the limit; raises KeyboardInterrupt if an interrupt ends the sweep.
RunHalf = Callable[[Cell, Half], CellResult]


def pairs_of(experiment: Experiment) -> int:
    """The number of pairs: the experiment's runs, or six if it has one."""
    return experiment.runs if experiment.runs > 1 else USUAL_PAIRS


def further_runs(cells: Sequence[Cell], experiment: Experiment) -> list[Cell]:
    """The cells that an intervention adds to a sweep, repeated for each of their runs; empty
    without an intervention."""
    first_runs = [cell for cell in cells if cell.run == 1]
    return first_runs * (2 * pairs_of(experiment)) if experiment.intervene is not None else []


def require_liftable(limits: Limits, cpu_plan: CpuPlan) -> None:
    """Raise UsageError if there is no CPU quota to lift, because the server's cores are its only
    CPU limit."""
    if limits.cpus is None or limits.cpus >= len(cpu_plan.server_cpus):
        raise UsageError(
            "--intervene cpu: there is no CPU limit to lift, because --cpus allows whole cores",
            "use a smaller --cpus, such as 0.5, or omit --intervene",
        )


def lifted(setting: Setting) -> Setting:
    """The same setting without the CPU limit."""
    return replace(setting, limits=replace(setting.limits, cpus=None))


def intervene(
    cells: Sequence[Cell], experiment: Experiment, run: RunHalf
) -> tuple[tuple[InterventionResult, ...], bool]:
    """The results for the first run of every cell, and whether all trials were carried out.

    Each pair is a complete block: every cell is measured with and without the limit before any cell
    is measured again.
    """
    first_runs = [cell for cell in cells if cell.run == 1]
    trials = [
        Trial(cell.server, cell.level.rate_per_s, cell.level.connections) for cell in first_runs
    ]
    count = pairs_of(experiment)
    orders = [first_halves(count, _seed(experiment.seed, cell.id, 0)) for cell in first_runs]
    is_complete = True
    try:
        for number in range(count):
            for cell, trial, order in zip(first_runs, trials, orders, strict=True):
                pair = Pair(order[number])
                trial.pairs.append(pair)
                _run_pair(cell, pair, experiment, number, run)
    except KeyboardInterrupt:
        is_complete = False  # the pairs so far are kept
    return tuple(trial.result() for trial in trials), is_complete


def _run_pair(cell: Cell, pair: Pair, experiment: Experiment, number: int, run: RunHalf) -> None:
    halves: list[Half] = ["limited", "lifted"]
    for half in halves if pair.first == "limited" else halves[::-1]:
        # Run numbers that follow those of the sweep, for unique file names.
        run_number = experiment.runs + 2 * number + (1 if half == "limited" else 2)
        summary = run(
            replace(cell, run=run_number, seed=_seed(experiment.seed, cell.id, number + 1)), half
        )
        if half == "limited":
            pair.limited = summary
        else:
            pair.lifted = summary


def _seed(seed: int, cell_id: str, number: int) -> int:
    return zlib.crc32(f"{seed}/{cell_id}/{number}".encode())
