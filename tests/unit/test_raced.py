"""The launches of a race with stored cells: which are run, and which are replayed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from wsgiload.documents.cell_result import CellResult
from wsgiload.experiment.build import SweepSpec, experiment_of
from wsgiload.experiment.plan import Cell, Experiment, expand
from wsgiload.experiment.public_options import SweepOptions
from wsgiload.sweeps.raced import NextLaunch, run_race

from .invented_cells import cell

MS = 1e6
P99_MS = {"fast": 10.0, "near": 10.4, "slow": 90.0}


class _Lab:
    """Measures launches in virtual time, the last of ``most`` is interrupted."""

    def __init__(self, most: int = 1000) -> None:
        self.now_s = 0.0
        self.most = most
        self.launches: list[NextLaunch] = []
        self.cells: list[CellResult] = []
        self.measured: set[str] = set()

    def run(self, launch: NextLaunch) -> Sequence[CellResult] | None:
        if len(self.launches) == self.most:
            return None
        self.launches.append(launch)
        self.now_s += 3.0
        measured = [_measured(one) for one in launch.cells if one.id not in self.measured]
        self.cells += measured
        return measured

    def carry_out(self, experiment: Experiment, stored: Sequence[CellResult] = ()) -> bool:
        order = expand(experiment, tuple(P99_MS))
        state = run_race(experiment, order, stored, self.run, lambda: self.now_s)
        return state is not None


def _measured(one: Cell) -> CellResult:
    wobble = 1 + 0.03 * math.sin(one.run + len(one.server))
    return cell(one.server, one.run, P99_MS[one.server] * MS * wobble, rate=one.level.rate_per_s)


def _experiment(budget_s: float = 300.0) -> Experiment:
    options = SweepOptions(budget=budget_s)
    return experiment_of(SweepSpec(rates=[1000, 2000], servers=["waitress"], options=options))


def _ids(lab: _Lab) -> list[str]:
    return [one.id for one in lab.cells]


def test_both_rates_belong_to_one_launch_until_only_the_higher_one_is_open() -> None:
    lab = _Lab()
    assert lab.carry_out(_experiment())
    first = [{one.level.rate_per_s for one in launch.cells} for launch in lab.launches]
    assert first[0] == {1000.0, 2000.0}
    assert first[-1] == {2000.0}
    slow = [launch for launch in lab.launches if launch.cells[0].server == "slow"]
    assert len(slow) == 1


def test_a_resumed_race_continues_as_if_it_had_not_been_interrupted() -> None:
    whole, begun, resumed = _Lab(), _Lab(most=5), _Lab()
    whole.carry_out(_experiment())
    assert not begun.carry_out(_experiment())
    resumed.carry_out(_experiment(), begun.cells)
    assert _ids(begun) + _ids(resumed) == _ids(whole)


def test_the_stored_part_of_an_interrupted_launch_counts() -> None:
    whole, begun, resumed = _Lab(), _Lab(most=4), _Lab()
    whole.carry_out(_experiment())
    begun.carry_out(_experiment())
    stored = begun.cells[:-1]
    resumed.measured = {one.id for one in stored}
    resumed.carry_out(_experiment(), stored)
    assert _ids(resumed) == _ids(whole)[len(stored) :]
    # The new launch, and the stored load of 20 s.
    assert resumed.launches[0].left_s - resumed.launches[1].left_s > 3.0 + 20.0


def test_stored_launches_use_up_the_budget() -> None:
    begun, resumed = _Lab(most=3), _Lab()
    begun.carry_out(_experiment(20.0))
    resumed.carry_out(_experiment(20.0), begun.cells)
    assert resumed.launches == []
