"""An environment variable is the bottleneck if the server waits with one value and is faster with
another."""

from __future__ import annotations

from typing import Any

import pytest

from wsgiload.documents.cell_result import CellResult, ServerSettings, Versions
from wsgiload.findings.limiting_variable import limiting_variables
from wsgiload.findings.over_cells import alarms_over_cells
from wsgiload.report.answer import answer_of

from .filled import filled_summary, rates, reason, verdict
from .invented_cells import cell

IDLE = verdict("warn", None, reason("idle-server", "warn", "uses only 9 % of its CPU limit"))
FASTER = {"environment": {"POOL": "8", "DEBUG": "0"}, "goodput": 60.0}


def settings(environment: dict[str, str], **changes: Any) -> ServerSettings:
    defaults: dict[str, Any] = {
        "command": ("gunicorn", "shop.wsgi"),
        "user_command": "gunicorn shop.wsgi --bind {address}",
        "workers": 1,
        "threads": 8,
        "backlog": None,
        "keepalive": "on",
        "environment": environment,
        "versions": Versions(server=None, python=None, packages={}),
    }
    return ServerSettings(**defaults | changes)


def slow(**changes: Any) -> CellResult:
    defaults: dict[str, Any] = {
        "rate": 60.0,
        "rate_result": rates(31.0, offered_per_s=60.0),
        "settings": settings({"POOL": "1", "DEBUG": "0"}),
        "verdict": IDLE,
    }
    return cell("pool-1", **defaults | changes)


def other(goodput: float, environment: dict[str, str], **changes: Any) -> CellResult:
    fields = {"rate_result": rates(goodput, offered_per_s=60.0), "rate": changes.pop("rate", 60.0)}
    return cell("pool-8", **fields, settings=settings(environment, **changes))


def test_the_only_difference_between_an_idle_server_and_a_faster_one_is_the_bottleneck() -> None:
    cells = [slow(), other(**FASTER)]
    (alarm,) = limiting_variables(cells)
    assert alarm.message == (
        "POOL is the bottleneck of pool-1: with 1, it responds to 31 of 60 requests/s; pool-8 with "
        "8 responds to 60"
    )
    assert alarm.fix == "use the value of pool-8 for POOL"
    assert [reported.check for reported in alarms_over_cells(cells)] == ["limiting-variable"]

    summary = filled_summary({"servers": ("pool-1", "pool-8"), "rates": (60.0,)}, cells)
    warnings = answer_of(summary).warnings
    assert sum(alarm.message == line for line in warnings) == 1


def test_runs_are_averaged_and_each_server_is_named_once() -> None:
    cells = [
        *(slow(run=run) for run in (1, 2)),
        *(other(**FASTER) for _ in (1, 2)),
        slow(rate=90.0),
        other(**FASTER, rate=90.0),
    ]
    (alarm,) = limiting_variables(cells)
    assert "of 60 requests/s" in alarm.message


@pytest.mark.parametrize(
    "cells",
    [
        [slow(), other(33.0, {"POOL": "8", "DEBUG": "0"})],
        [slow(), other(60.0, {"POOL": "8", "DEBUG": "1"})],
        [slow(), other(60.0, {"POOL": "1", "DEBUG": "0"})],
        [slow(), other(**FASTER, rate=90.0)],
        [slow(), other(**FASTER, workers=2)],
        [slow(), other(**FASTER, user_command="granian shop.wsgi --port {port}")],
        [slow(verdict=verdict()), other(**FASTER)],
        [slow(verdict=verdict("invalid", "host")), other(**FASTER)],
        [slow(settings=settings({"POOL": "1", "DEBUG": "0"}, user_command=None)), other(**FASTER)],
        [slow()],
    ],
    ids=[
        "hardly faster",
        "two variables",
        "no variable",
        "another rate",
        "another size",
        "another command",
        "not idle",
        "invalid",
        "catalogue server",
        "alone",
    ],
)
def test_other_differences_raise_no_alarm(cells: list[CellResult]) -> None:
    assert list(limiting_variables(cells)) == []


def test_a_variable_that_only_one_server_sets_is_named() -> None:
    (alarm,) = limiting_variables([slow(), other(60.0, {"POOL": "1"})])
    assert "with 0, it responds to 31 of 60 requests/s; pool-8 with no value" in alarm.message
