"""The generator's spin window, receive timestamps and real-time priority."""

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


def planned(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int | None, str | None]:
    assert run(["load", URL, "-R", "50", *options, "--dry-run", "--json", "-"]) == 0
    plan = json.loads(capsys.readouterr().out)
    return plan["spin_window_ns"], plan["receive_stamps"]


def test_the_options_reach_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert planned(capsys) == (None, None)
    assert planned(capsys, "--spin", "40us", "--receive-stamps", "user") == (40_000, "user")
    assert planned(capsys, "--spin", "0s", "--receive-stamps", "sampled") == (0, "sampled")


def test_unknown_receive_stamps_are_rejected() -> None:
    options = LoadOptions(receive_stamps=cast(Any, "never"))
    with pytest.raises(wsgiload.UsageError, match="kernel"):
        wsgiload.load(URL, options=options)


@pytest.mark.parametrize("shared", [False, True])
def test_the_generator_knows_whether_it_shares_its_cores(shared: bool) -> None:
    """The generator adapts its spin window and reports it; the plan keeps the requested one."""
    load = LoadSettings(duration_ns=10**9, spin=7e-9)
    plan = load_plan(URL, Request(), load, Level(rate_per_s=5.0), seed=1)
    order = _order_of(plan, CpuPlan((0,), (0,), shared_cores=shared), None)
    sent = msgspec.json.decode(order.plan, type=LoadPlan)
    assert sent == msgspec.structs.replace(plan, shares_cores=shared)
    assert sent.spin_window_ns == 7
    assert order.realtime is not shared


DRIVER_POLICY_SCRIPT = """
import os, resource, sys
from wsgiload.loads import _driver

if sys.argv[1] == "limited":
    resource.setrlimit(resource.RLIMIT_RTTIME, (100_000, 100_000))
_driver._use_real_time_priority()
print(os.sched_getscheduler(0) == os.SCHED_RR)
"""


def real_time_permitted() -> bool:
    script = "import os; os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))"
    return subprocess.run([sys.executable, "-c", script], stderr=subprocess.DEVNULL).returncode == 0


@pytest.mark.skipif(not real_time_permitted(), reason="real-time priority is not permitted here")
@pytest.mark.parametrize("limit", ["unlimited", "limited"])
def test_the_generator_of_a_sweep_has_real_time_priority_unless_it_could_be_killed(
    limit: str,
) -> None:
    argv = [sys.executable, "-c", DRIVER_POLICY_SCRIPT, limit]
    output = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    assert output.strip() == str(limit == "unlimited")
