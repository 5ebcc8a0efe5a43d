"""The cells that a race still measures within its budget, and its messages."""

from __future__ import annotations

from collections.abc import Sequence

from wsgiload.documents.cell_result import CellResult
from wsgiload.experiment.build import SweepSpec, experiment_of
from wsgiload.experiment.plan import Cell, Experiment
from wsgiload.experiment.public_options import SweepOptions
from wsgiload.loads.options import Level
from wsgiload.sweeps.race_schedule import RaceSchedule

from .invented_cells import cell

MS = 1e6
P99_MS = {"fast": 10.0, "near": 10.5, "slow": 40.0}


class _Clock:
    """A clock that the test advances."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def _experiment(budget_s: float = 900.0) -> Experiment:
    options = SweepOptions(budget=budget_s, slo=("p99<50ms",))
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


def test_no_trial_starts_that_may_exceed_the_budget() -> None:
    clock = _Clock()
    race = _race([], clock)
    assert race.fits(_next("fast", 2))
    clock.now_s += 865
    assert race.left_s() == 35
    assert not race.fits(_next("fast", 2))


def test_trials_are_expected_to_take_as_long_as_the_slowest() -> None:
    clock = _Clock()
    race = _race([], clock)
    race.slowest_s = {False: 60.0}
    clock.now_s += 840
    assert not race.fits(_next("fast", 2))


def test_time_before_an_interruption_counts_against_the_budget() -> None:
    race = _race([])
    race.spent_s = 865.0
    assert not race.fits(_next("fast", 2))


# --- with an objective, over two rates


def _objective_race(cells: Sequence[CellResult]) -> RaceSchedule:
    options = SweepOptions(budget=900.0, slo=("p99<50ms", "error_rate<=0.1%"))
    experiment = experiment_of(SweepSpec(rates=[1000, 2000], duration=10, options=options))
    assert experiment.budget_ns is not None
    rivals = {cells[0].app if cells else None: tuple(P99_MS)}
    return RaceSchedule(experiment, rivals, experiment.budget_ns, 100.0, clock_s=_Clock())


def _at(rate: float, server: str, run: int) -> Cell:
    return Cell(server, Level(rate_per_s=rate), run, seed=1)


def _met_at(rate: float, runs: int, p99_ms: float = 10.0) -> list[CellResult]:
    return [
        cell(name, run, p99_ms * MS * (1 + 0.02 * (run % 3)), rate=rate)
        for run in range(1, runs + 1)
        for name in P99_MS
    ]


def test_a_lower_rate_is_measured_only_if_no_server_meets_the_objective_above() -> None:
    met, missed = _met_at(2000, 5), _met_at(2000, 1, p99_ms=400.0)
    assert not _objective_race(met).wants(_at(1000, "fast", 1), met)
    assert not _objective_race(met).wants(_at(2000, "fast", 6), met)
    assert _objective_race(missed).wants(_at(1000, "fast", 1), missed)
    assert not _objective_race(missed).wants(_at(2000, "fast", 2), missed)


def test_short_and_long_trials_are_timed_separately() -> None:
    race = _objective_race([])
    race.took(_at(2000, "fast", 1), 8.0)
    race.clock_s.now_s += 867  # type: ignore[attr-defined]
    assert race.left_s() == 33
    assert race.fits(_at(1000, "fast", 1))
    assert not race.fits(_at(1000, "fast", 2))


def test_servers_that_did_not_qualify_are_reported_in_one_line() -> None:
    cells = [
        *(cell(name, 1, 10 * MS, rate=2000.0) for name in ("fast", "near")),
        cell("slow", 1, 400 * MS, rate=2000.0),
    ]
    race = _objective_race(cells)
    assert race.new_drops(_at(2000, "fast", 2), cells) == [
        "2000: 1 dropped out after short trials; remaining: fast, near"
    ]
