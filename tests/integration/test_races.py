"""A race of settings for an objective, within its budget: interrupted, resumed and answered."""

from __future__ import annotations

import time

import pytest

from .command import Command, until
from .stored import only_run, schema_errors

pytestmark = [pytest.mark.servers, pytest.mark.limits]

BUDGET_S = 90
WORDS = (
    *("--servers", "wsgiref,waitress", "--grid", "threads=1,2", "--rates", "40,80"),
    *("--slo", "p99<5s", "--budget", f"{BUDGET_S}s", "--duration", "1s", "--warmup", "0s"),
    *("--cooldown", "0s", "--settle", "0s", "--reruns", 0),
)


def test_the_leanest_setting_is_named_within_the_budget_also_after_an_interrupt(
    command: Command,
) -> None:
    began_s = time.monotonic()
    running = command.start("sweep", *WORDS)
    until(lambda: ", run 2 " in running.err, "the end of the short trials")
    running.press_ctrl_c()
    assert running.end().code == 130

    done = command.run("sweep", "--resume", only_run(command))
    assert time.monotonic() - began_s < BUDGET_S
    assert done.code in (0, 98), done.err  # 98 where a busy host spoiled a trial

    summary = done.summary
    assert schema_errors("summary-2", summary) == []
    assert {cell["rate"] for cell in summary["cells"]} == {80}, "the highest rate was answered"
    short = [cell["id"] for cell in summary["cells"] if cell["run"] == 1]
    assert sorted(short) == ["waitress-t1@80#1", "waitress-t2@80#1", "wsgiref@80#1"]

    [found] = summary["recommendations"]
    recommended = found["recommended"]
    assert recommended is not None, found["no_recommendation"]
    assert (recommended["rate_per_s"], recommended["runs"]) == (80, 4)
    peaks = {
        entry["label"]: entry["memory_peak_bytes"]
        for entry in summary["answer"]["ranking"][0]["entries"]
    }
    assert peaks[recommended["server"]] <= 1.1 * min(peaks.values())
    assert "Recommended: " in done.out
    assert summary["answer"]["command_line"].endswith("hello:app")
