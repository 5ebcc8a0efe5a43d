"""An experiment of several runs: that it can be killed and gone on with, and what it tells of its
servers together."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import msgspec
import pytest

import wsgiload
from wsgiload import LoadOptions, RequestOptions, ResourceLimits, SweepOptions
from wsgiload.analysis.over_cells import analyse
from wsgiload.documents.codec import to_plain

from .command import Command, Running, read_json, until
from .stored import expected_code, only_run, rows, schema_errors

pytestmark = [pytest.mark.servers, pytest.mark.limits]

# A/A test (one server, two names), so that nothing but the names differs.
WORDS = (
    "--servers",
    "wsgiref,again=wsgiref",
    "--rates",
    100,
    "--runs",
    2,
    "--seed",
    3,
    "--duration",
    "1s",
)
BRIEFLY = ("--warmup", "0s", "--cooldown", "0s", "--settle", "0s", "--reruns", 0)


def under_load(command: Command, running: Running, place: int) -> None:
    """Wait until this cell of the experiment is being driven."""
    until(lambda: f"[{place}/4]" in running.err, f"cell {place}")
    until(
        lambda: any("wsgiload.loads._driver" in line for line in command.processes().values()),
        "its load",
    )


def test_an_experiment_killed_and_interrupted_and_resumed_is_the_one_that_was_not(
    command: Command,
) -> None:
    running = command.start("sweep", *WORDS, *BRIEFLY)
    under_load(command, running, 2)
    os.kill(running.pid, signal.SIGKILL)
    running.end()
    until(
        lambda: command.processes() == {} and command.groups() == [],
        "the end of everything",
        timeout_s=20,
    )
    run_dir = only_run(command)
    assert read_json(run_dir / "summary.json")["status"] != "complete"

    running = command.start("sweep", "--resume", run_dir)
    under_load(command, running, 3)
    running.press_ctrl_c()
    assert running.end().code == 130
    assert [cell["id"] for cell in read_json(run_dir / "summary.json")["cells"]] != []

    resumed = command.run("sweep", "--resume", run_dir)
    assert resumed.run_dir == run_dir == only_run(command)
    summary = resumed.summary
    assert summary["status"] == read_json(run_dir / "run.json")["status"] == "complete"
    assert resumed.code == expected_code(summary)

    whole = command.run("sweep", *WORDS, *BRIEFLY, "--out", "whole")
    assert summary["order"] == whole.summary["order"]
    assert [cell["id"] for cell in summary["cells"]] == [
        cell["id"] for cell in whole.summary["cells"]
    ]
    assert [cell["id"] for cell in summary["cells"]] == summary["order"]
    plans = [
        [
            read_json(done.run_dir / "load" / f"{name}.json")["plan"]["seed"]
            for name in summary["order"]
        ]
        for done in (resumed, whole)
    ]
    assert plans[0] == plans[1], "the arrivals are the same"
    assert schema_errors("summary-2", summary) == []
    intervals = rows(run_dir / "intervals.csv")
    for cell in summary["cells"]:
        own = [row for row in intervals if row["cell"] == cell["id"]]
        assert sum(int(row["scheduled"]) for row in own) == cell["outcomes"]["scheduled"], (
            "nothing is there twice"
        )

    again = command.run("sweep", "--resume", run_dir)
    assert (again.code, again.err) == (
        2,
        f"wsgiload: {run_dir} is complete; there is nothing to resume; see its results: wsgiload "
        f"report {run_dir}\n",
    )
    other = command.run("sweep", "--resume", run_dir, "--runs", 3)
    assert other.code == 2
    assert other.err.startswith("wsgiload: --resume: ") and len(other.err.splitlines()) == 1

    change = command.run("compare", run_dir, whole.run_dir)
    assert change.code == 0
    (again,) = [line for line in change.out.splitlines() if line.startswith("again at 100/s: ")]
    assert "required runs" in again


def test_several_runs_are_told_together_and_told_alike_from_the_store(tmp_path: Path) -> None:
    result = wsgiload.sweep(
        rates=[100],
        servers=["wsgiref", "again=wsgiref"],
        duration=0.5,
        load=LoadOptions(warmup=0, cooldown=0),
        request=RequestOptions(expect_length=14),
        limits=ResourceLimits(policy="none"),
        options=SweepOptions(runs=4, settle=0, reruns=0, aggregate="trim"),
        out=tmp_path,
    )
    assert schema_errors("summary-2", result.to_dict()) == []
    stored = read_json(result.run_dir / "summary.json")
    assert stored == to_plain(result.summary)
    judged = ("aggregates", "comparisons", "overload", "validity")
    bare = msgspec.structs.replace(result.summary, **dict.fromkeys(judged))
    assert to_plain(analyse(bare)) == stored
    named = [(entry["server"], entry["rate"]) for entry in stored["aggregates"]]
    assert named == [("wsgiref", 100.0), ("again", 100.0)]
    [entry] = stored["comparisons"]
    assert entry["same_server"]
    assert {cell["alias"] for cell in stored["cells"]} == {None, "again"}
