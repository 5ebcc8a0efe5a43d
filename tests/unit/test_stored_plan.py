"""A stored plan restores its experiment, and anything that has changed since is refused."""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from wsgiload.cli import run
from wsgiload.documents.codec import encode
from wsgiload.documents.load_plan import RequestPlan, WeightedRequest
from wsgiload.documents.run_info import HostFacts
from wsgiload.errors import UsageError
from wsgiload.experiment.estimate import experiment_s, longest_s, remaining_s
from wsgiload.experiment.plan import Experiment, ResourceLimits, Size, expand, plain
from wsgiload.experiment.procedure import Procedure
from wsgiload.host.cpus import CpuPlan
from wsgiload.host.facts import host_facts
from wsgiload.limits.model import Counters
from wsgiload.loads.options import Level, LoadSettings, load_plan
from wsgiload.loads.precision import Precision
from wsgiload.loads.request import Request, Transport
from wsgiload.results.store import RunDirectory
from wsgiload.results.stored_plan import (
    raw_plan,
    read_plan,
    require_same_host,
    require_same_plan,
    require_same_revision,
    require_same_versions,
    revive,
    stored_plan,
)
from wsgiload.sampling.sampler import Sample
from wsgiload.units import NS_PER_S

from .filled import filled_cell, filled_run, filled_summary
from .test_store import measured_load, run_info

PLAIN = Experiment(
    name="hello",
    app="hello:app",
    app_dir=Path("/apps"),
    request=Request(),
    load=LoadSettings(duration_ns=10 * NS_PER_S, warmup=2.0, cooldown=1.0),
    levels=(Level(rate_per_s=100.0), Level(rate_per_s=0.1 + 0.2)),
)
RICH = replace(
    PLAIN,
    request=Request(
        "/x", "POST", (("A", "1"), ("A", "2")), b"\x00\xff", (200, 404), b"right", 5, "ab", "r.*"
    ),
    load=replace(
        PLAIN.load,
        keepalive=7,
        deadline=5e-9,
        check_thresholds={"send-lag.warn": 0.02},
        transport=Transport(source_addresses=("127.0.0.2",)),
    ),
    levels=(Level(connections=3),),
    store_secrets=True,
    servers=("waitress", "again=waitress"),
    limits=ResourceLimits(cpus=None, server_cpus=(1, 2), policy="best-effort"),
    sizes=(Size(2, None), Size(None, 4, "stock", 5, "cpu", "3.13")),
    precision=Precision(0.05, "p99.9"),
    runs=6,
    seed=2**64 - 1,
    procedure=Procedure(5, 2, "trim"),
)
MIXED = replace(
    PLAIN,
    request=Request(
        targets=(WeightedRequest(weight=2, request=RequestPlan(url="/a", headers=(("TE", "b"),))),)
    ),
)


@pytest.mark.parametrize("experiment", [PLAIN, RICH, MIXED], ids=["plain", "rich", "mixed"])
def test_a_stored_plan_restores_its_experiment(experiment: Experiment, tmp_path: Path) -> None:
    cells = expand(experiment, ("a", "b"))
    ids = [cell.id for cell in cells]
    resolved = stored_plan(experiment, cells, CpuPlan((1,), (0,), shared_cores=False))
    assert revive(raw_plan(resolved)) == resolved

    (tmp_path / "run.json").write_text(json.dumps(filled_run(plain(resolved), {"cpus": 2})))
    restored, order, host = read_plan(tmp_path)
    assert (restored, order, host.cpus) == (experiment, ids, 2)

    servers = ("waitress", "again")
    assert expand(read_plan(tmp_path)[0], servers) == expand(experiment, servers)


def test_a_search_cannot_be_resumed(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps(filled_run(plain(PLAIN))))
    with pytest.raises(UsageError, match="is a search, which cannot be resumed"):
        read_plan(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        json.dumps(filled_run({"order": [], "colour": 1})),
        json.dumps(filled_run(plain(PLAIN) | {"order": [], "colour": 1})),
        json.dumps(
            filled_run(plain(PLAIN) | {"order": [], "procedure": {"reruns": 1, "colour": 1}})
        ),
    ],
    ids=["empty", "list", "nothing", "neither", "unknown", "unknown inside"],
)
def test_an_invalid_plan_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(
        UsageError, match=r"run\.json (is not JSON|is not a valid|was written by another version)"
    ):
        read_plan(tmp_path)
    with pytest.raises(UsageError, match=r"cannot be read: No such file"):
        read_plan(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            replace(PLAIN, runs=3),
            "--resume: runs is 3 here but 1 in the stored plan; use --resume alone",
        ),
        (
            replace(PLAIN, load=replace(PLAIN.load, timeout=1.0)),
            "load.timeout is 1.0 here",
        ),
        (replace(PLAIN, levels=PLAIN.levels[:1]), "levels is "),
    ],
)
def test_a_different_plan_is_refused_with_the_first_difference(
    other: Experiment, message: str
) -> None:
    with pytest.raises(UsageError, match=message.replace("[", r"\[")):
        require_same_plan(PLAIN, other)
    require_same_plan(PLAIN, replace(PLAIN, out=Path("/elsewhere"), slo=("p99<50ms",)))


def test_only_options_that_were_given_are_compared() -> None:
    """Without -d, the requested experiment has the usual duration, which nobody asked for."""
    brief = replace(PLAIN, load=replace(PLAIN.load, duration_ns=10**9))
    require_same_plan(brief, PLAIN, PLAIN, {"reruns"})
    with pytest.raises(UsageError, match=r"load\.duration_ns is \d+ here but 1000000000 "):
        require_same_plan(brief, PLAIN, PLAIN, {"duration"})
    with pytest.raises(UsageError, match="runs is 3 here but 1 in"):
        require_same_plan(brief, replace(PLAIN, runs=3), PLAIN, {"runs"})


def test_a_different_host_or_version_is_refused() -> None:
    host = HostFacts(kernel="6.1", cpus=2, load_average="0.1")
    require_same_host(host, msgspec.structs.replace(host, load_average="9.9"))
    with pytest.raises(
        UsageError,
        match=r"the host has changed: kernel was '6\.1' and is now '6\.2'; start a new run",
    ):
        require_same_host(host, msgspec.structs.replace(host, kernel="6.2"))

    cells = [
        filled_cell(id="waitress@100#1", version="3.0.2", python="3.11.2"),
        filled_cell(id="x@1#1", version=None, python=None),
    ]
    require_same_versions(cells, {"waitress": ("3.0.2", "3.11.2"), "x": ("1", "2")})

    with pytest.raises(
        UsageError,
        match=r"waitress was measured with version 3.0.2 on Python 3.11.2, but now has version 3.1 ",
    ):
        require_same_versions(cells, {"waitress": ("3.1", "3.11.2")})


# --- the run directory


def test_a_reopened_run_keeps_only_the_cells_of_its_summary(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path, "hello")
    directory.write_run(run_info(directory))
    for cell in ("a@1#1", "b@1#1"):
        directory.write_cell(cell, measured_load(), [Sample(10, 0, Counters(cpu_usage_ns=7))])
    with (directory.path / "resources.csv").open("a") as file:
        file.write("b@1#1,20,4")  # torn in the middle of a row
    for cell in ("a@1#1", "b@1#1"):
        directory.server_log(cell).touch()
    logs = {path.name: path.read_text() for path in directory.path.glob("latency.*")}
    reopened = RunDirectory.reopen(directory.path, {"a@1#1"})

    for name in ("resources.csv", "intervals.csv"):
        rows = list(csv.DictReader((reopened.path / name).read_text().splitlines()))
        assert {row["cell"] for row in rows} == {"a@1#1"}

    assert [path.name for path in (reopened.path / "load").iterdir()] == ["a@1#1.json"]
    assert [path.name for path in (reopened.path / "server").iterdir()] == ["a@1#1.log"]
    assert "Tag=b" not in (reopened.path / "latency.hlog").read_text()

    reopened.write_cell("b@1#1", measured_load(), [])
    assert {path.name: path.read_text() for path in directory.path.glob("latency.*")} == logs

    reopened.write_run(run_info(reopened))
    assert json.loads((reopened.path / "run.json").read_text())[
        "started_utc"
    ] == directory.started_utc.isoformat(timespec="seconds")


# --- estimated times


def test_the_estimate_includes_loads_waits_and_server_starts() -> None:
    cells = expand(replace(PLAIN, runs=2), ("waitress",))
    assert experiment_s(cells, PLAIN) == 4 * (13 + 2)
    waiting = replace(PLAIN, procedure=Procedure(settle_ns=120 * NS_PER_S))
    assert experiment_s(cells, waiting) == 4 * (13 + 2 + 5)
    assert longest_s(cells, waiting) == 4 * (13 + 2 + 120)
    assert longest_s(cells, PLAIN) == experiment_s(cells, PLAIN)


def test_remaining_trials_are_expected_to_take_as_long_as_the_completed_ones() -> None:
    cells = expand(replace(PLAIN, runs=2), ("waitress",))
    assert remaining_s(cells[:1], 30.0, cells[1:], PLAIN) == pytest.approx(3 * 30)
    assert remaining_s(cells, 100.0, [], PLAIN) == 0


# --- warm-up by requests


def test_a_warm_up_lasts_for_at_least_the_given_number_of_requests() -> None:
    load = replace(PLAIN.load, warmup_requests=500)
    slow, fast = Level(rate_per_s=100.0), Level(rate_per_s=10_000.0)
    phases = [
        load_plan("http://h/", Request(), load, level, 1).phases.warmup_ns for level in (slow, fast)
    ]

    assert phases == [5 * NS_PER_S, 2 * NS_PER_S]
    assert load.load_ns_at(slow) == 16 * NS_PER_S
    with pytest.raises(UsageError, match="--warmup-requests requires --rates; use --warmup"):
        replace(PLAIN, load=load, levels=(Level(connections=3),))


# --- the command line


def dry_run(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert run(["sweep", *words, "--dry-run", "--json", "-"]) == 0
    plan: dict[str, Any] = json.loads(capsys.readouterr().out)
    return plan


def test_a_comparison_has_as_many_runs_as_needed_and_at_least_six(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert dry_run(capsys, "--servers", "waitress")["runs"] == 1
    assert dry_run(capsys, "--servers", "waitress,again=waitress", "--compare")["runs"] == 6

    monkeypatch.setenv("WSGILOAD_AGGREGATE", "trim")
    words = "--servers waitress,wsgiref,cheroot --compare --settle 1s"
    plan = dry_run(capsys, *words.split())
    assert plan["runs"] == 7
    assert plan["procedure"] == {"settle_ns": NS_PER_S, "reruns": 3, "aggregate": "trim"}
    assert plan["estimated_seconds"] > plan["load_seconds"]
    assert dry_run(capsys, "--servers", "waitress,wsgiref", "--compare", "--runs", "4")["runs"] == 4


def test_the_runs_of_an_intervention_are_counted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--servers", "waitress", "--rates", "100,200", "--cpus", "0.5")
    without = dry_run(capsys, *words)
    monkeypatch.setenv("WSGILOAD_INTERVENE", "cpu")
    with_intervention = dry_run(capsys, *words)
    assert (without["intervention_runs"], with_intervention["intervention_runs"]) == (0, 2 * 12)
    for name in ("load_seconds", "estimated_seconds"):
        assert with_intervention[name] == pytest.approx(13 * without[name])

    pinned = "sweep --servers waitress --server-cpus 0 --dry-run"
    assert run(pinned.split()) == 2
    assert "there is no CPU limit to lift" in capsys.readouterr().err


def store(directory: Path, experiment: Experiment, status: str) -> None:
    """Write the parts of a run directory that resuming reads."""
    run_json = filled_run({**plain(experiment), "order": []}, plain(host_facts()))
    (directory / "run.json").write_text(json.dumps(run_json))
    summary = filled_summary({}, [], status=status)
    (directory / "summary.json").write_text(encode(summary))


def test_a_complete_run_and_a_missing_one_cannot_be_resumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["sweep", "--resume", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith(f"wsgiload: {tmp_path}/run.json cannot be read: ")

    store(tmp_path, PLAIN, "complete")
    assert run(["sweep", "--resume", str(tmp_path)]) == 2
    assert f"{tmp_path} is complete; there is nothing to resume" in capsys.readouterr().err

    (tmp_path / "summary.json").write_text('{"status": "interr')
    assert run(["sweep", "--resume", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert (
        error.startswith(f"wsgiload: {tmp_path}/summary.json is not JSON: ")
        and error.count("\n") == 1
    )

    (tmp_path / "summary.json").unlink()
    assert run(["sweep", "--resume", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith(f"wsgiload: {tmp_path}/summary.json cannot be read: ")


def test_a_stored_objective_can_be_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dry_run(capsys, "--servers", "waitress")["slo"] == []
    assert dry_run(capsys, "--servers", "waitress", "--slo", "p99<50ms")["slo"] == [
        "p99<50ms",
        "error_rate<=0.1%",
    ]

    store(tmp_path, replace(PLAIN, slo=("p99<50ms",)), "interrupted")
    module = sys.modules["wsgiload.sweeps.sweep"]
    monkeypatch.setattr(module, "_carry_out", lambda experiment, *_: experiment)

    assert cast(Any, module).resume_sweep(tmp_path).slo == ("p99<50ms",)
    assert cast(Any, module).resume_sweep(tmp_path, slo=("p99<1s",)).slo == ("p99<1s",)


def test_a_different_revision_of_the_app_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wsgiload.results.stored_plan.revision_of", lambda folder: "bbb")
    with pytest.raises(UsageError, match="it is at revision bbb and was at aaa"):
        require_same_revision(replace(PLAIN, app_revision="aaa"))
    require_same_revision(replace(PLAIN, app_revision="bbb"))
    require_same_revision(PLAIN)
