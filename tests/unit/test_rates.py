"""Default rates are fractions of the goodput of the fastest configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from wsgiload.capacity_search import rates
from wsgiload.capacity_search.trials import TrialPlan
from wsgiload.documents.cell_result import CellFailure, CellResult
from wsgiload.documents.run_info import RunInfo
from wsgiload.errors import LoadError, ServerError, WsgiloadError

from .filled import filled_cell, verdict
from .filled import rates as rates_of
from .test_summary import EXPERIMENT


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


def find_rates(
    monkeypatch: pytest.MonkeyPatch, goodputs_per_s: Mapping[str, float | str]
) -> tuple[list[float], list[str]]:
    trials, log_lines = Trials(goodputs_per_s), list[str]()

    @contextmanager
    def server_trials(*_: object) -> Iterator[tuple[Trials, dict[str, int]]]:
        yield trials, dict.fromkeys(goodputs_per_s, 8)

    monkeypatch.setattr(rates, "server_trials", server_trials)
    levels = rates.find_levels(EXPERIMENT, log_lines.append)
    assert trials.written == ["complete", "complete"]
    return [level.rate_per_s or 0.0 for level in levels], log_lines


def test_rates_are_fractions_of_the_highest_goodput(monkeypatch: pytest.MonkeyPatch) -> None:
    levels, log_lines = find_rates(monkeypatch, {"slow": 100.0, "quick": 487.0, "broken": "server"})
    assert levels == [150.0, 240.0, 340.0, 410.0, 460.0]
    (line,) = log_lines
    assert line.startswith(
        "rates: 150/s, 240/s, 340/s, 410/s, 460/s; the fastest configuration reached 487/s"
    )


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
