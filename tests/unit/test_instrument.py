"""How the generator waits and whose clock it believes: as asked for, and as the cores allow."""

from __future__ import annotations

import json

import pytest

import wsgiload
from wsgiload.cli import run
from wsgiload.host.cpus import CpuPlan
from wsgiload.loads.drive import _own_or_shared

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
def test_the_generator_is_told_that_it_shares_its_cores(shared: bool) -> None:
    """It decides itself what follows for its spin, and says so; what was asked for stays."""
    order = _own_or_shared(
        {"url": URL, "spin_window_ns": 7}, CpuPlan((0,), (0,), shared_cores=shared)
    )
    assert order["plan"] == {"url": URL, "spin_window_ns": 7, "shares_cores": shared}
    assert order["realtime"] is not shared
