"""Which cells of a plan a race still measures, within its budget, and what it says of that."""

from __future__ import annotations

from collections.abc import Sequence

from wsgiload.documents.summary import CellResult
from wsgiload.experiment.build import SweepSpec, experiment_of
from wsgiload.experiment.plan import Cell, Experiment
from wsgiload.experiment.public_options import SweepOptions
from wsgiload.loads.options import Level
from wsgiload.sweeps.race_schedule import RaceSchedule

from .invented_cells import cell

MS = 1e6
P99_MS = {"fast": 10.0, "near": 10.5, "slow": 40.0}


class _Clock:
    """A clock that only moves when it is told to."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def _experiment(budget_s: float = 900.0) -> Experiment:
    options = SweepOptions(budget=budget_s)
    return experiment_of(SweepSpec(rates=[1000], duration=10, options=options))


def _cells(rounds: int) -> list[CellResult]:
    return [
        cell(name, run, p99 * MS * (1 + 0.02 * ((run + place) % 3)))
        for run in range(1, rounds + 1)
        for place, (name, p99) in enumerate(P99_MS.items())
    ]


def _race(cells: Sequence[CellResult], clock: _Clock | None = None) -> RaceSchedule:
    app = cells[0].app if cells else None
    experiment = _experiment()
    assert experiment.budget_ns is not None
    rivals = {app: tuple(P99_MS)}
    return RaceSchedule(experiment, rivals, experiment.budget_ns, 100.0, clock_s=clock or _Clock())


def _next(server: str, run: int) -> Cell:
    return Cell(server, Level(rate_per_s=1000.0), run, seed=1)


def test_every_server_is_measured_while_nothing_is_known() -> None:
    race = _race(_cells(1))
    assert all(race.wants(_next(name, 2), _cells(1)) for name in P99_MS)


def test_a_server_that_is_clearly_slower_is_not_measured_again_and_that_is_said_once() -> None:
    cells = _cells(2)
    race = _race(cells)
    assert not race.wants(_next("slow", 3), cells)
    (news,) = [text for text in race.news(_next("slow", 3), cells) if "slow" in text]
    assert news.startswith("1000: slow dropped out after 2 rounds: ")
    assert race.news(_next("slow", 3), cells) == []


def test_a_round_under_way_decides_nothing_until_it_is_complete() -> None:
    cells = _cells(2)
    race = _race(cells)
    assert race.wants(_next("slow", 2), cells)


def test_a_level_that_is_tied_is_not_measured_again() -> None:
    cells = [one for one in _cells(8) if not one.id.startswith("slow")]
    race = _race(cells)
    race.rivals = dict.fromkeys(race.rivals, ("fast", "near"))
    assert not race.wants(_next("fast", 9), cells)


def test_no_trial_begins_that_might_not_end_within_the_budget() -> None:
    clock = _Clock()
    race = _race([], clock)
    assert race.fits(_next("fast", 1))
    clock.now_s += 865
    assert race.left_s() == 35
    assert not race.fits(_next("fast", 1))


def test_a_trial_that_took_longer_than_planned_is_expected_again() -> None:
    clock = _Clock()
    race = _race([], clock)
    race.slowest_s = 60.0
    clock.now_s += 840
    assert not race.fits(_next("fast", 1))


def test_what_was_spent_before_an_interrupt_is_not_spent_again() -> None:
    race = _race([])
    race.spent_s = 865.0
    assert not race.fits(_next("fast", 1))
