"""`wsgiload explain` covers every check and alarm that the code can report."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from wsgiload._loadgen import check_catalogue
from wsgiload.analysis.explanations import explanation_of, explanations
from wsgiload.cli import run
from wsgiload.errors import UsageError

PACKAGE = Path(__file__).parents[2] / "python" / "wsgiload"
# Matches the names of reported checks and alarms in the source code.
NAMED = re.compile(r'(?:[Rr]eason(?:_of)?|[Aa]larm|Finding|NotChecked)\(\s*(?:check=)?"([a-z-]+)"')
CONSTANTS = {"lower-bound", "unfinished"}


def reported_names() -> set[str]:
    """The checks and alarms that the Python code reports."""
    files = [PACKAGE / "results" / "summary.py", PACKAGE / "capacity_search" / "result.py"]
    modules = ("alarms", "limiting_variable", "response_alarms", "service_alarms", "tail_alarms")
    files += [PACKAGE / "analysis" / f"{name}.py" for name in modules]
    files.append(PACKAGE / "analysis" / "ground_truth.py")
    files += (PACKAGE / "audit" / "findings").glob("*.py")
    return {name for file in files for name in NAMED.findall(file.read_text())} | CONSTANTS


def test_every_reported_name_is_explained() -> None:
    load_checks = {check["name"] for check in json.loads(check_catalogue())}
    assert len(reported_names()) > 20, "the pattern matches the source code"
    assert set(explanations()) == load_checks | reported_names()


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


def test_without_a_name_all_explanations_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" ")[0] for line in lines] == list(explanations())


def test_the_error_for_an_unknown_name_suggests_the_closest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["explain", "sendlag"]) == 2
    assert "did you mean send-lag" in capsys.readouterr().err
    with pytest.raises(UsageError, match="`wsgiload explain` lists them"):
        explanation_of("#")
