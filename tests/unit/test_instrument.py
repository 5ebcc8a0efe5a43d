"""How the generator waits and whose clock it believes: as asked for, and as the cores allow."""

from __future__ import annotations

import json

import msgspec
import pytest

import wsgiload
from wsgiload.cli import run
from wsgiload.documents.load_plan import LoadPlan
from wsgiload.host.cpus import CpuPlan
from wsgiload.loads.drive import _order_of
from wsgiload.loads.options import Level, LoadOptions, load_plan
from wsgiload.loads.request import Request

URL = "http://127.0.0.1:9/"


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int | None, str | None]:
    assert run(["load", URL, "-R", "50", *words, "--dry-run"]) == 0
    plan = json.loads(capsys.readouterr().out)
    return plan["spin_window_ns"], plan["receive_stamps"]


def test_the_options_reach_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert asked(capsys) == (None, None)
    assert asked(capsys, "--spin", "40us", "--receive-stamps", "user") == (40_000, "user")
    assert asked(capsys, "--spin", "0s", "--receive-stamps", "sampled") == (0, "sampled")


def test_unknown_stamps_are_refused() -> None:
    with pytest.raises(wsgiload.UsageError, match="kernel"):
        wsgiload.load(URL, receive_stamps="never")


@pytest.mark.parametrize("shared", [False, True])
def test_the_plan_says_whether_the_generator_shares_its_cores(shared: bool) -> None:
    """It decides itself what follows for its spin, and says so; what was asked for stays."""
    load = LoadOptions(duration_ns=1, spin_window_ns=7)
    plan = load_plan(URL, Request(), load, Level(connections=1), seed=0)
    order = _order_of(plan, CpuPlan((0,), (0,), shared_cores=shared))
    expected = msgspec.structs.replace(plan, shares_cores=shared)
    assert msgspec.json.decode(order.plan, type=LoadPlan) == expected
    assert expected.spin_window_ns == 7
    assert order.realtime is not shared
