"""`wsgiload explain` covers every check and alarm that the code can report."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from wsgiload._loadgen import check_catalogue
from wsgiload.analysis.explanations import explanation_of, explanations
from wsgiload.cli import run
from wsgiload.documents.check_names import CODES
from wsgiload.errors import UsageError

PACKAGE = Path(__file__).parents[2] / "python" / "wsgiload"
# How the code names what it reports.
NAMED = re.compile(r'(?:[Rr]eason(?:_of)?|[Aa]larm|Finding|NotChecked)\(\s*(?:check=)?"([a-z-]+)"')
CONSTANTS = {"lower-bound", "unfinished"}


def reported() -> set[str]:
    files = [PACKAGE / "results" / "summary.py", PACKAGE / "capacity_search" / "result.py"]
    modules = ("alarms", "limiting_variable", "response_alarms", "service_alarms", "tail_alarms")
    files += [PACKAGE / "analysis" / f"{name}.py" for name in modules]
    files.append(PACKAGE / "analysis" / "ground_truth.py")
    files += (PACKAGE / "audit" / "findings").glob("*.py")
    return {name for file in files for name in NAMED.findall(file.read_text())} | CONSTANTS


def test_every_reported_name_is_explained() -> None:
    of_load = {one["name"] for one in json.loads(check_catalogue())}
    assert len(reported()) > 20, "the pattern finds what the code reports"
    assert set(explanations()) == of_load | reported()


def test_an_earlier_name_is_explained_too() -> None:
    assert explanation_of("settle") == explanation_of("host-not-idle")


def test_every_name_with_a_code_is_explained_with_it() -> None:
    assert {one.name: one.code for one in explanations().values() if one.code} == CODES


@pytest.mark.parametrize("name", sorted(explanations()))
def test_each_explanation_has_a_test_a_condition_and_a_fix(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explain", name]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split(" ")[0] == name
    assert [line.split(" ")[0] for line in lines[2:5]] == ["Tests:", "Fires", "Fix:"]
    for key, limit in explanation_of(name).thresholds.items():
        assert f"Threshold: --check-threshold {name}.{key}={limit:.15g}" in lines


def test_a_code_is_accepted_as_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "C4"]) == 0
    assert capsys.readouterr().out.startswith("send-lag (C4)\n")


def test_without_a_name_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" ")[0] for line in lines] == list(explanations())


def test_an_unknown_name_suggests_the_closest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "sendlag"]) == 2
    assert "did you mean send-lag" in capsys.readouterr().err
    with pytest.raises(UsageError, match="`wsgiload explain` lists them"):
        explanation_of("#")
