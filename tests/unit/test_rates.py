"""Without --rates, closed loops determine the rates of a sweep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest

from wsgiload.capacity_search import rates
from wsgiload.capacity_search.trials import TrialPlan
from wsgiload.documents.cell_result import CellFailure, CellResult
from wsgiload.documents.run_info import RunInfo
from wsgiload.errors import LoadError, ServerError, UsageError, WsgiloadError
from wsgiload.experiment.build import SweepSpec, experiment_of
from wsgiload.experiment.plan import Experiment
from wsgiload.experiment.public_options import ServerOptions, SweepOptions

from .filled import filled_cell, verdict
from .filled import rates as rates_of


class Trials:
    """Trials of servers with these goodputs; a string is the blame for a failure."""

    def __init__(self, goodputs_per_s: Mapping[str, float | str]) -> None:
        self.goodputs_per_s = goodputs_per_s
        self.written: list[str] = []
        self.cells: list[CellResult] = []
        self.directory = self
        self.started = "2026-11-21T09:30:00+00:00"

    def carry_out(self, plan: TrialPlan) -> CellResult:
        assert plan.level.connections == 8
        self.cells.append(self._cell(plan))
        return self.cells[-1]

    def _cell(self, plan: TrialPlan) -> CellResult:
        goodput_per_s = self.goodputs_per_s[plan.server]
        if isinstance(goodput_per_s, str):
            message = f"failed by {goodput_per_s}"
            return filled_cell(
                server=plan.server,
                failure=CellFailure(step="load", message=message, log_tail=""),
                verdict=verdict("invalid", goodput_per_s),
            )

        return filled_cell(
            server=plan.server,
            rate_result=rates_of(goodput_per_s),
            verdict=verdict() if goodput_per_s else verdict("invalid", "server"),
        )

    def write_run(self, run: RunInfo) -> None:
        assert [look.server for look in run.closed_loops] == list(self.goodputs_per_s)
        self.written.append(run.status)

    def write_summary(self, status: str) -> None:
        self.written.append(status)


def planned(slo: str | None = None, budget_s: float | None = None) -> Experiment:
    options = SweepOptions(budget=budget_s, slo=(slo,) if slo else ())
    experiment = experiment_of(SweepSpec(servers=["waitress", "wsgiref"], options=options))
    return replace(experiment, slo=options.slo)


def find_rates(
    monkeypatch: pytest.MonkeyPatch,
    goodputs_per_s: Mapping[str, float | str],
    experiment: Experiment | None = None,
) -> tuple[Experiment, list[str]]:
    trials, log_lines = Trials(goodputs_per_s), list[str]()

    @contextmanager
    def server_trials(initial: Experiment, _log: object) -> Iterator[tuple[Trials, dict[str, int]]]:
        assert (initial.is_race, initial.is_sliced, initial.load.warmup) == (False, False, 0.5)
        yield trials, dict.fromkeys(goodputs_per_s, 8)

    monkeypatch.setattr(rates, "server_trials", server_trials)
    found = rates.with_found_rates(experiment or planned(), log_lines.append)
    assert trials.written == ["complete", "complete"]
    return found, log_lines


def rates_in(experiment: Experiment) -> list[float | None]:
    return [level.rate_per_s for level in experiment.levels]


GOODPUTS: Mapping[str, float | str] = {"slow": 100.0, "quick": 487.0, "broken": "server"}


def test_with_an_objective_rates_are_fractions_of_the_highest_goodput(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, log_lines = find_rates(monkeypatch, GOODPUTS, planned("p99<50ms"))
    assert rates_in(found) == [150.0, 240.0, 340.0, 410.0, 460.0]
    first, *loops, last = log_lines
    assert first.startswith("A closed loop of 2 s per configuration determines the rates first (")
    assert loops == [
        "[closed loop] slow … 100/s",
        "[closed loop] quick … 487/s",
        "[closed loop] broken … failed",
    ]
    assert last == "rates: 150/s, 240/s, 340/s, 410/s, 460/s"


def test_the_closed_loops_are_a_part_of_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    before = planned()
    found, log_lines = find_rates(monkeypatch, GOODPUTS, before)
    assert log_lines[0].endswith("(about 9 s of the budget).")
    assert found.budget_ns == before.budget_ns == 300_000_000_000
    assert 0 < found.closed_loops_ns < 1_000_000_000
    assert found.race_s == pytest.approx(300 - found.closed_loops_ns / 1e9)
    # 0.5 * 100/s is too slow for p99 in a quarter of the budget; 1,100 requests at 340/s take 3.2 s.
    assert rates_in(found) == [59.0, 340.0]
    assert found.load.duration_ns == pytest.approx(1_100 / 59 * 1e9, abs=1)


@pytest.mark.parametrize(
    ("by_app", "expected"),
    [
        ({None: [900.0, 1000.0, 800.0]}, [700.0]),
        ({None: [20_000.0, 1_000.0, 3_000.0]}, [500.0, 14_000.0]),
        ({None: [20_000.0, 20.0]}, [100.0, 14_000.0]),
        ({None: [200.0, 100.0]}, [140.0]),  # 100/s is too close to 140/s
        ({"hello": [20_000.0, 10_000.0], "cpu": [2_000.0, 1_000.0]}, [500.0, 1_400.0]),
        ({None: [95.0]}, [66.5]),
    ],
    ids=["alike", "unlike", "one too slow for p99", "no room", "two apps", "one server"],
)
def test_the_rates_are_one_that_the_fastest_carries_and_one_that_all_carry(
    by_app: Mapping[str | None, list[float]], expected: list[float]
) -> None:
    assert rates.rates_of(by_app, least_per_s=100.0) == pytest.approx(expected)


def test_a_budget_too_short_to_find_rates_is_refused() -> None:
    def many(budget_s: float) -> Experiment:
        server = ServerOptions(grid={"workers": [1, 2, 4], "threads": [1, 4]})
        options = SweepOptions(budget=budget_s)
        names = ["gunicorn-gthread", "granian"]
        return experiment_of(SweepSpec(servers=names, server=server, options=options))

    with pytest.raises(
        UsageError, match=r"too short to find rates for 12 configurations"
    ) as raised:
        rates.require_possible_rates(many(60.0))
    assert "use --rates, or --budget 2m" in raised.value.args
    rates.require_possible_rates(many(120.0))


def test_closed_loops_that_exceed_their_share_of_the_budget_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Servers that are slow to start, for example: 20 s each instead of 4.5 s."""
    now_ns = iter([0, *range(0, 200_000_000_000, 20_000_000_000)])
    monkeypatch.setattr(rates, "time", SimpleNamespace(monotonic_ns=lambda: next(now_ns)))
    servers: dict[str, float | str] = {f"s{at}": 100.0 for at in range(12)}
    with pytest.raises(UsageError, match="too short to find rates") as raised:
        find_rates(monkeypatch, servers, planned(budget_s=120.0))
    # Half of it for 12 times 20 s.
    assert "use --rates, or --budget 8m" in raised.value.args


@pytest.mark.parametrize(
    ("goodputs_per_s", "kind", "message"),
    [
        ({"broken": "server"}, ServerError, "failed by server"),
        ({"wrong": 0.0}, ServerError, "no configuration gave a correct response"),
        ({"disturbed": "client"}, LoadError, "failed by client"),
        ({"unlimited": "host"}, LoadError, "failed by host"),
        ({"disturbed": "client", "broken": "server"}, ServerError, "failed by server"),
        (
            {"disturbed": "client", "wrong": 0.0},
            ServerError,
            "no configuration gave a correct response",
        ),
    ],
)
def test_without_a_correct_response_finding_rates_raises_the_error_of_the_trials(
    monkeypatch: pytest.MonkeyPatch,
    goodputs_per_s: Mapping[str, float | str],
    kind: type[WsgiloadError],
    message: str,
) -> None:
    with pytest.raises(kind, match=message) as caught:
        find_rates(monkeypatch, goodputs_per_s)
    assert caught.value.exit_code == (97 if kind is ServerError else 98)
