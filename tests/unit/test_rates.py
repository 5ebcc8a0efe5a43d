"""Rates that nobody named are shares of what the quickest setting gets through."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from wsgiload import rates
from wsgiload.capacity_trials import TrialPlan
from wsgiload.errors import ServerError

Json = dict[str, Any]


class Trials:
    """Servers that get so much through, or fail."""

    def __init__(self, goodputs_per_s: Mapping[str, float | None]) -> None:
        self.goodputs_per_s = goodputs_per_s
        self.written: list[str] = []
        self.cells: list[Json] = []
        self.directory = self

    def carry_out(self, plan: TrialPlan) -> Json:
        assert plan.level.connections == 8
        goodput_per_s = self.goodputs_per_s[plan.server]
        if goodput_per_s is None:
            return {"failure": {"message": "it does not start"}, "rate_result": None}
        return {"failure": None, "rate_result": {"goodput_per_s": goodput_per_s}}

    def write_run(self, run: Json) -> None:
        self.written.append(run["status"])

    def write_summary(self, status: str) -> None:
        self.written.append(status)


def found(monkeypatch: pytest.MonkeyPatch, goodputs_per_s: Mapping[str, float | None]) -> tuple[list[float], list[str]]:
    trials, said = Trials(goodputs_per_s), list[str]()

    @contextmanager
    def server_trials(*_: object) -> Iterator[tuple[Trials, dict[str, int]]]:
        yield trials, dict.fromkeys(goodputs_per_s, 8)

    monkeypatch.setattr(rates, "server_trials", server_trials)
    monkeypatch.setattr(rates, "plain", lambda _: {})
    levels = rates.find_levels(None, said.append)  # type: ignore[arg-type]
    assert trials.written == ["complete", "complete"]
    return [level.rate_per_s or 0.0 for level in levels], said


def test_the_quickest_setting_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    levels, said = found(monkeypatch, {"slow": 100.0, "quick": 487.0, "broken": None})
    assert levels == [150.0, 240.0, 340.0, 410.0, 460.0]
    (line,) = said
    assert line.startswith("rates 150, 240, 340, 410, 460 per second: shares of the 487/s that the quickest setting ")


@pytest.mark.parametrize(
    ("goodputs_per_s", "message"),
    [({"broken": None}, "it does not start"), ({"wrong": 0.0}, "no setting gave a right answer")],
)
def test_without_an_answer_there_is_no_rate(
    monkeypatch: pytest.MonkeyPatch, goodputs_per_s: Mapping[str, float | None], message: str
) -> None:
    with pytest.raises(ServerError, match=message):
        found(monkeypatch, goodputs_per_s)
