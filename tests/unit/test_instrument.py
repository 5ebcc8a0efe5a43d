"""How the generator waits and whose clock it believes: as asked for, and as the cores allow."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, cast

import msgspec
import pytest

import wsgiload
from wsgiload import LoadOptions
from wsgiload.cli import run
from wsgiload.documents.load_plan import LoadPlan
from wsgiload.host.cpus import CpuPlan
from wsgiload.loads.drive import _order_of
from wsgiload.loads.options import Level, LoadSettings, load_plan
from wsgiload.loads.request import Request

URL = "http://127.0.0.1:9/"


def planned(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int | None, str | None]:
    assert run(["load", URL, "-R", "50", *words, "--dry-run"]) == 0
    plan = json.loads(capsys.readouterr().out)
    return plan["spin_window_ns"], plan["receive_stamps"]


def test_the_options_reach_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert planned(capsys) == (None, None)
    assert planned(capsys, "--spin", "40us", "--receive-stamps", "user") == (40_000, "user")
    assert planned(capsys, "--spin", "0s", "--receive-stamps", "sampled") == (0, "sampled")


def test_unknown_stamps_are_refused() -> None:
    options = LoadOptions(receive_stamps=cast(Any, "never"))
    with pytest.raises(wsgiload.UsageError, match="kernel"):
        wsgiload.load(URL, options=options)


@pytest.mark.parametrize("shared", [False, True])
def test_the_generator_knows_whether_it_shares_its_cores(shared: bool) -> None:
    """It decides itself what follows for its spin, and reports it; what was requested stays."""
    load = LoadSettings(duration_ns=10**9, spin_window_ns=7)
    plan = load_plan(URL, Request(), load, Level(rate_per_s=5.0), seed=1)
    order = _order_of(plan, CpuPlan((0,), (0,), shared_cores=shared), None)
    sent = msgspec.json.decode(order.plan, type=LoadPlan)
    assert sent == msgspec.structs.replace(plan, shares_cores=shared)
    assert sent.spin_window_ns == 7
    assert order.realtime is not shared


POLICY_OF_THE_DRIVER = """
import os, resource, sys
from wsgiload.loads import _driver

if sys.argv[1] == "limited":
    resource.setrlimit(resource.RLIMIT_RTTIME, (100_000, 100_000))
_driver._use_real_time_priority()
print(os.sched_getscheduler(0) == os.SCHED_RR)
"""


def policy_permitted() -> bool:
    script = "import os; os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))"
    return subprocess.run([sys.executable, "-c", script], stderr=subprocess.DEVNULL).returncode == 0


@pytest.mark.skipif(not policy_permitted(), reason="real-time priority is not permitted here")
@pytest.mark.parametrize("limit", ["unlimited", "limited"])
def test_the_generator_of_a_sweep_is_a_real_time_process_unless_it_would_be_killed(
    limit: str,
) -> None:
    words = [sys.executable, "-c", POLICY_OF_THE_DRIVER, limit]
    printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert printed.strip() == str(limit == "unlimited")
