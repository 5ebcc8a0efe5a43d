"""A race of settings with an objective: interrupted, resumed and finished within its budget."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from .command import Command, until
from .reference import needs_reference
from .stored import only_run, schema_errors

pytestmark = [pytest.mark.servers, pytest.mark.limits]

BUDGET_S = 90
RACE = (
    *("--servers", "wsgiref,waitress", "--grid", "threads=1,2", "--rates", "40,80"),
    *("--slo", "p99<5s", "--budget", f"{BUDGET_S}s", "--duration", "1s", "--warmup", "0s"),
    *("--cooldown", "0s", "--settle", "0s"),
)


def test_an_interrupted_race_is_resumed_and_recommends_the_leanest_setting_within_the_budget(
    command: Command,
) -> None:
    began_s = time.monotonic()
    running = command.start("sweep", *RACE)
    until(lambda: "[block 2]" in running.err, "the second block")
    running.press_ctrl_c()
    assert running.end().code == 130

    result = command.run("sweep", "--resume", only_run(command))
    assert time.monotonic() - began_s < BUDGET_S
    assert result.code in (0, 98), result.err  # 98: a busy host made a trial invalid

    summary = result.summary
    assert schema_errors("summary-1", summary) == []
    assert {cell["rate"] for cell in summary["cells"]} == {80}, "only the highest rate is measured"
    first_runs = [cell["id"] for cell in summary["cells"] if cell["run"] == 1]
    assert sorted(first_runs) == ["waitress-t1@80#1", "waitress-t2@80#1", "wsgiref@80#1"]

    [recommendation] = summary["recommendations"]
    recommended = recommendation["recommended"]
    assert recommended is not None, recommendation["no_recommendation"]
    assert (recommended["rate_per_s"], recommended["runs"]) == (80, 4)
    peaks = {
        entry["label"]: entry["memory_peak_bytes"]
        for entry in summary["answer"]["ranking"][0]["entries"]
    }
    assert peaks[recommended["server"]] <= 1.1 * min(peaks.values())
    assert "Recommended: " in result.out
    assert summary["answer"]["command_line"].endswith("hello:app")


REFSRV = Path(__file__).parents[2] / "target/release/refsrv"


def holding(**holds: str) -> list[str]:
    """A server for each of these response times."""
    started = {name: f"{REFSRV} --listen {{address}} --hold {hold}" for name, hold in holds.items()}
    return [word for name in started for word in ("--command", f"{name}={started[name]}")]


@needs_reference
def test_the_default_run_decides_and_starts_each_server_once_for_all_rates(
    command: Command,
) -> None:
    servers = holding(fast="1ms", slow="60ms")
    result = command.run("sweep", *servers, "--rates", "500,1000", "--budget", "60s")
    assert result.code == 0, result.err

    summary = result.summary
    assert schema_errors("summary-1", summary) == []
    race = next(one for one in summary["races"] if one["rate"] == 1000)
    assert (race["outcome"], race["contenders"]) == ("winner", ["fast"])
    assert race["standings"][0]["factor"] > 3
    assert summary["answer"]["status"] == "decided"
    assert "Behind: slow (" in summary["answer"]["sentence"]
    assert "[block 1] fast … p99 " in result.err

    [first, second] = [cell for cell in summary["cells"] if cell["id"].startswith("fast")][:2]
    assert {first["rate"], second["rate"]} == {500, 1000}
    logs = {path.name for path in (only_run(command) / "server").glob("fast*#1.log")}
    assert len(logs) == 1, "one launch"


@needs_reference
def test_without_rates_they_follow_from_closed_loops_within_the_budget(command: Command) -> None:
    began_s = time.monotonic()
    result = command.run("sweep", *holding(fast="5ms", slow="60ms"), "--budget", "60s")
    assert time.monotonic() - began_s < 75
    assert result.code == 0, result.err

    summary = result.summary
    low, high = summary["experiment"]["rates"]
    # Of 16 users, and 2 blocks of 2 servers at the lower rate in a quarter of the budget.
    assert 0.3 * 3200 < high < 0.75 * 3200
    assert low == 290
    assert summary["experiment"]["budget_s"] == 60
    race = next(one for one in summary["races"] if one["rate"] == high)
    assert (race["outcome"], race["contenders"]) == ("winner", ["fast"])

    [found] = (command.folder / ".wsgiload" / "runs").glob("*-rates-*")
    loops = json.loads((found / "run.json").read_text())["closed_loops"]
    assert [one["server"] for one in loops] == ["fast", "slow"]
    plan = json.loads((result.run_dir / "run.json").read_text())["plan"]
    assert 5e9 < plan["closed_loops_ns"] < 30e9
