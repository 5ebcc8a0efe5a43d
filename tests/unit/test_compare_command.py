"""``wsgiload compare``: comparison of two stored runs and of their plans and hosts."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import unescape
from pathlib import Path

import msgspec
import pytest

from wsgiload.analysis.comparison import unlike, unlike_hosts
from wsgiload.cli import run
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.codec import encode
from wsgiload.documents.load_report import Outcomes
from wsgiload.documents.run_info import HostFacts, RunInfo

from .invented_cells import cell, experiment, runs_of
from .report_fixture import store_summary, summary_of

replace = msgspec.structs.replace


def store_run(directory: Path, cells: Sequence[CellResult], **facts: object) -> Path:
    directory.mkdir()
    experiment_facts = {"runs": 6, "cpus": 1.0, "name": directory.name} | facts
    versioned_cells = [replace(result, version="3.0.2", python="3.11.2") for result in cells]
    store_summary(directory, summary_of(versioned_cells, **experiment_facts))
    return directory


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    before = store_run(
        tmp_path / "before", experiment(1, {"a": 20e6, "b": 20e6, "gone": 1e6}, run_effect=0.01)
    )
    after = store_run(
        tmp_path / "after", experiment(2, {"b": 20e6, "a": 40e6}, run_effect=0.01), cpus=2.0
    )

    return before, after


def test_each_common_server_and_each_other_difference_is_one_line(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compare", *map(str, runs)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    of_a, of_b, plans = re.split(r" (?=b at|The plans)", text)
    assert of_a.startswith("a at 1,000/s: p99 is ")
    assert " the first run's (including 10 % between sessions, assumed); p50 is " in of_a
    assert of_b.startswith("b at 1,000/s: no significant difference in p99 ")
    assert plans == "The plans differ: cpus changed from 1 to 2."


def test_comparisons_as_json(runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", *map(str, runs), "--figure", "goodput", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)

    assert result["schema_version"] == 1
    assert result["runs"] == [str(path) for path in runs]
    assert [
        (entry["first"], entry["figure"], entry["conclusion"]) for entry in result["comparisons"]
    ] == [
        ("a", "goodput", "undecided"),
        ("b", "goodput", "undecided"),
    ]
    assert len(result["unlike"]) == 1


def test_the_page_of_a_comparison_loads_no_resources(
    runs: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "change.html"
    assert run(["compare", *map(str, runs), "--html", str(page)]) == 0
    sentences = capsys.readouterr().out.splitlines()

    text = unescape(page.read_text(encoding="utf-8"))
    assert all(sentence in text for sentence in sentences)
    assert re.findall('<figure id="([^"]*)"', text) == [
        "forest",
        "response-time",
        "goodput",
        "spectrum",
    ], "no resources were measured"
    assert '"servers":["a (first)","a (second)","b (first)","b (second)"]' in text
    assert "a at 1,000/s" in text[text.index('<figure id="forest">') :].partition("</figure>")[0]

    assert [tag for tag in ("<link", "<img", "<iframe", "src=") if tag in text] == []
    assert str(runs[0]) in text
    assert f"What changed from {runs[0].name} to {runs[1].name}?" in text
    sections = [f'id="{section}"' for section in ("answer", "curves", "comparisons", "unlike")]
    assert [text.index(section) for section in sections] == sorted(
        text.index(section) for section in sections
    )


def test_with_too_few_runs_the_page_has_a_reason_and_no_forest_plot(tmp_path: Path) -> None:
    directories = [
        store_run(tmp_path / name, experiment(1, {"a": 20e6}, runs=3)) for name in ("one", "two")
    ]
    assert run(["compare", *map(str, directories), "--html", str(tmp_path / "change.html")]) == 0

    text = (tmp_path / "change.html").read_text(encoding="utf-8")
    assert "only 3 of 4 required runs" in text
    assert 'id="forest"' not in text


def test_too_few_runs_are_compared_without_an_interval(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = store_run(tmp_path / "one", experiment(1, {"a": 20e6}, runs=1))
    second = store_run(tmp_path / "two", experiment(1, {"a": 80e6}, runs=1))

    assert run(["compare", str(first), str(second)]) == 0
    assert capsys.readouterr().out.splitlines()[0] == (
        "a at 1,000/s: p99 is 4.00× the first run's, without a confidence interval: only 1 of 4 "
        "required runs. Repeat both with --runs 4 or more"
    )


def test_app_revisions_are_compared() -> None:
    first, second = (
        summary_of([cell("a")], runs=1, app_revision=commit * 40) for commit in ("a", "b")
    )

    assert unlike(first, second) == ["The app changed from revision aaaaaaaaaaaa to bbbbbbbbbbbb."]
    assert unlike(first, first) == ["Both runs measured revision aaaaaaaaaaaa of the app."]


def test_runs_without_a_common_server_are_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = store_run(tmp_path / "one", experiment(1, {"a": 1e6}))
    second = store_run(tmp_path / "two", experiment(1, {"b": 1e6}))

    assert run(["compare", str(first), str(second)]) == 2
    assert "have no server and load level in common" in capsys.readouterr().err


def test_a_changed_server_version_is_a_difference() -> None:
    before = replace(cell("a"), version="1.0", python="3.11.2")
    first = summary_of([before], runs=3)
    second = summary_of([replace(before, version="2.0")], runs=6)
    assert unlike(first, second) == ["a changed from 1.0 on Python 3.11.2 to 2.0 on Python 3.11.2."]
    assert unlike(first, first) == []


def test_a_session_rate_is_not_relative_to_capacity(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes = msgspec.convert(
        dict.fromkeys(Outcomes.__struct_fields__, 0) | {"scheduled": 40_000, "ok": 20_000}, Outcomes
    )

    overloaded = [
        replace(result, outcomes=outcomes) for result in runs_of("a", [None] * 6, rate=2000.0)
    ]
    cells = [*experiment(1, {"a": 20e6}), *overloaded]

    directories = [
        str(store_run(tmp_path / name, cells, sessions=sessions))
        for name, sessions in (("of-requests", None), ("of-sessions", 2))
    ]

    for runs, expected in ((directories[:1] * 2, 1.0), (directories, None)):
        assert run(["compare", *runs, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["comparisons"][0]["relative_rate"] == expected


HOST = HostFacts(
    cpu_model="A",
    cpus=2,
    available_cpus=(0, 1),
    kernel="6.1",
    machine="x86_64",
    load_average="1",
)


def run_on(host: HostFacts) -> RunInfo:
    return RunInfo(
        schema_version=1,
        started_utc="2026-11-21T09:30:00+00:00",
        status="complete",
        plan=msgspec.Raw(b"{}"),
        host=host,
    )


def test_different_hosts_are_one_warning(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert unlike_hosts(HOST, replace(HOST, load_average="9")) == []
    assert unlike_hosts(HOST, None) == [], "an unknown host is not compared"

    other_host = replace(HOST, cpu_model="B", kernel="6.12")
    for directory, host in zip(runs, (HOST, other_host), strict=True):
        (directory / "run.json").write_text(encode(run_on(host)))

    assert run(["compare", *map(str, runs)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    warning = (
        "Warning: the hosts differ: cpu model changed from A to B, kernel changed from 6.1 to 6.12."
    )
    assert warning in text

    assert run(["compare", *map(str, runs), "--json"]) == 0
    assert warning in json.loads(capsys.readouterr().out)["unlike"]


def test_an_incomplete_run_is_named() -> None:
    first = summary_of()
    second = replace(first, status="interrupted")
    assert unlike(first, second) == ["The second run was interrupted, so it lacks some cells."]
    assert unlike(replace(first, status="failed"), first) == [
        "The first run failed before it was complete."
    ]
