"""``wsgiload reproduce``: every study has an original and a fair version, both valid experiments."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest

from wsgiload.cli import _reproduce as reproduce
from wsgiload.cli import run
from wsgiload.cli._reproduce import studies
from wsgiload.statistics.effect import MIN_RUNS

ORIGINALS = ("appdynamics-2016", "dyedov-2012", "kgriffs-2012", "slides-2013", "ziade-2012")
# On a quiet host. With the reports and on a busy host, the studies take less than 40 minutes.
MAX_MINUTES = 36


def planned(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert run(["reproduce", *words, "--dry-run", "--json", "-", "--quiet"]) == 0, (
        capsys.readouterr().err
    )
    plan: dict[str, Any] = json.loads(capsys.readouterr().out)
    return plan


def test_each_study_has_an_original_and_a_fair_version() -> None:
    assert sorted(studies()) == sorted([*ORIGINALS, *(f"{name}-fair" for name in ORIGINALS)])


@pytest.mark.parametrize("name", studies())
def test_a_study_is_an_experiment_at_both_scales(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tomllib.loads(studies()[name].read_text())
    full, quick = planned(capsys, name, "--scale", "full"), planned(capsys, name)

    for plan in (full, quick):
        assert plan["title"] == table["title"]
        assert plan["notes"][: len(table["notes"])] == table["notes"]
        assert plan["name"] == name
        assert plan["estimated_seconds"] > 0

    assert quick["estimated_seconds"] < full["estimated_seconds"]
    assert any(note.startswith("scale quick: ") for note in quick["notes"])
    assert not any(note.startswith("scale ") for note in full["notes"])


def test_only_the_original_studies_run_with_stock_settings(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ORIGINALS:
        assert planned(capsys, name)["profile"] == "stock"
        assert planned(capsys, f"{name}-fair")["profile"] == "tuned"


def test_all_studies_take_less_than_40_minutes(capsys: pytest.CaptureFixture[str]) -> None:
    seconds = [planned(capsys, name)["estimated_seconds"] for name in studies()]
    assert sum(seconds) < MAX_MINUTES * 60


def test_the_load_levels_are_those_of_the_publication(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def levels(name: str) -> list[float]:
        plan = planned(capsys, name, "--scale", "full")
        return [level["connections"] or level["rate_per_s"] for level in plan["levels"]]

    tens = [*range(100, 1001, 100), *range(2000, 10_001, 1000)]
    assert levels("appdynamics-2016") == tens
    assert levels("dyedov-2012") == [1, 5, *range(20, 301, 20)]
    assert levels("ziade-2012") == [50, 100, 150, 200, 250, 300, 400]
    assert levels("slides-2013") == [1000, 2000, 3000]


def test_on_a_small_machine_the_server_gets_fewer_cores_with_a_note(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reproduce, "available_cpus", lambda: (0, 1))
    plan = planned(capsys, "appdynamics-2016")
    assert plan["limits"]["cpus"] == 1
    assert plan["notes"][-1] == "scaled to 2 cores: cpus 1 instead of 2"
    monkeypatch.setattr(reproduce, "available_cpus", lambda: tuple(range(8)))
    assert not any("scaled to" in note for note in planned(capsys, "slides-2013")["notes"])


def test_the_studies_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reproduce", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(studies())
    assert lines[0].startswith("appdynamics-2016 ")


def test_every_study_has_enough_runs_to_be_judged(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in studies():
        assert planned(capsys, name)["runs"] >= MIN_RUNS


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["appdynamics"], "unknown comparison 'appdynamics'; did you mean appdynamics-2016?"),
        (["x"], "unknown comparison 'x'; see `wsgiload reproduce --list`"),
        (["slides-2013", "--scale", "huge"], "Invalid value for '--scale': 'huge' is not one of"),
        (["slides-2013-fair", "--servers", "x", "--quiet"], "unknown server 'x'"),
        ([], "Missing argument 'NAME'"),
    ],
)
def test_an_error_is_one_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["reproduce", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"wsgiload: {message}")
