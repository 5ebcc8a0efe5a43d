"""Experiments with several runs: resuming them after a kill or an interrupt, and their aggregated
results."""

from __future__ import annotations

import os
import shlex
import signal
from pathlib import Path

import msgspec
import pytest

import wsgiload
from wsgiload import LoadOptions, RequestOptions, ResourceLimits, SweepOptions
from wsgiload.analysis.over_cells import analyse
from wsgiload.documents.codec import to_plain

from .command import Command, RunningCommand, read_json, until
from .stored import expected_code, only_run, rows, schema_errors

pytestmark = [pytest.mark.servers, pytest.mark.limits]

# An A/A test: one server under two names.
ARGS = shlex.split("--servers wsgiref,again=wsgiref --rates 100 --runs 2 --seed 3 --duration 1s")
BRIEFLY = ("--warmup", "0s", "--cooldown", "0s", "--settle", "0s")


def wait_for_load(command: Command, running: RunningCommand, cell: int) -> None:
    """Wait until this cell of the experiment is under load."""
    until(lambda: f"[{cell}/4]" in running.err, f"cell {cell}")
    until(
        lambda: any("wsgiload.loads._driver" in line for line in command.processes().values()),
        "the load",
    )


def test_a_resumed_experiment_has_the_same_cells_and_arrivals_as_an_uninterrupted_one(
    command: Command,
) -> None:
    running = command.start("sweep", *ARGS, *BRIEFLY)
    wait_for_load(command, running, 2)
    os.kill(running.pid, signal.SIGKILL)
    running.end()
    until(
        lambda: command.processes() == {} and command.groups() == [],
        "the cleanup",
        timeout_s=20,
    )
    run_dir = only_run(command)
    assert read_json(run_dir / "summary.json")["status"] != "complete"

    running = command.start("sweep", "--resume", run_dir)
    wait_for_load(command, running, 3)
    running.press_ctrl_c()
    assert running.end().code == 130
    assert [cell["id"] for cell in read_json(run_dir / "summary.json")["cells"]] != []

    resumed = command.run("sweep", "--resume", run_dir)
    assert resumed.run_dir == run_dir == only_run(command)
    summary = resumed.summary
    assert summary["status"] == read_json(run_dir / "run.json")["status"] == "complete"
    assert resumed.code == expected_code(summary)

    uninterrupted = command.run("sweep", *ARGS, *BRIEFLY, "--out", "whole")
    assert summary["order"] == uninterrupted.summary["order"]
    assert [cell["id"] for cell in summary["cells"]] == [
        cell["id"] for cell in uninterrupted.summary["cells"]
    ]
    assert [cell["id"] for cell in summary["cells"]] == summary["order"]
    seeds = [
        [
            read_json(result.run_dir / "load" / f"{name}.json")["plan"]["seed"]
            for name in summary["order"]
        ]
        for result in (resumed, uninterrupted)
    ]
    assert seeds[0] == seeds[1], "the arrivals differ"
    assert schema_errors("summary-1", summary) == []
    intervals = rows(run_dir / "intervals.csv")
    for cell in summary["cells"]:
        scheduled = [int(row["scheduled"]) for row in intervals if row["cell"] == cell["id"]]
        assert sum(scheduled) == cell["outcomes"]["scheduled"], "duplicate intervals"

    completed = command.run("sweep", "--resume", run_dir)
    assert completed.code == 2
    assert f"wsgiload: {run_dir} is complete; there is nothing to resume" in completed.err
    assert completed.err.endswith(f"wsgiload report {run_dir}\n")
    changed = command.run("sweep", "--resume", run_dir, "--runs", 3)
    assert changed.code == 2
    assert changed.err.startswith("wsgiload: --resume: ") and len(changed.err.splitlines()) == 1

    comparison = command.run("compare", run_dir, uninterrupted.run_dir)
    assert comparison.code == 0
    (line,) = [line for line in comparison.out.splitlines() if line.startswith("again at 100/s: ")]
    assert "required runs" in line


def test_aggregates_and_comparisons_can_be_recomputed_from_the_stored_cells(
    tmp_path: Path,
) -> None:
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

    assert schema_errors("summary-1", result.to_dict()) == []
    stored = read_json(result.run_dir / "summary.json")
    assert stored == to_plain(result.summary)

    computed = ("aggregates", "comparisons", "overload", "validity")
    cells_only = msgspec.structs.replace(result.summary, **dict.fromkeys(computed))
    assert to_plain(analyse(cells_only)) == stored

    aggregated = [(entry["server"], entry["rate"]) for entry in stored["aggregates"]]
    assert aggregated == [("wsgiref", 100.0), ("again", 100.0)]
    [comparison] = stored["comparisons"]
    assert comparison["same_server"]
    assert {cell["alias"] for cell in stored["cells"]} == {None, "again"}
