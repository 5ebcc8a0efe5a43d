"""A recommendation in summary.json, read back, on the page and on the terminal: the same one
everywhere."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from wsgiload.analysis.objective import parse_objective
from wsgiload.analysis.over_cells import analyse
from wsgiload.analysis.recommend import Memory, Recommendation, Refusal, recommend
from wsgiload.analysis.recommendations import found_in, recommendations
from wsgiload.cli import run
from wsgiload.documents.schema import load_schema
from wsgiload.report import write_html

from .report_fixture import read_summary, write_run

Json = dict[str, Any]
FOUND = [
    Recommendation(
        "a-w2", 300.0, "p99", 2e6, (1e6, 3e6), 6, Memory(2**25, 2**29), None, 1, ("a-w4", "a-w8")
    ),
    Recommendation("b", 100.0, "error_rate", None, None, 4, Memory(None, None), "c"),
    Refusal("b at 200/s is undecided: held in 4 of 6 runs", "--runs 12 would settle it"),
    Refusal("no setting holds p99<1ms at 100/s", "lower --rates, or a wider limit", is_missed=True),
]


@pytest.mark.parametrize("found", FOUND)
def test_what_is_stored_is_what_was_found(found: Recommendation | Refusal) -> None:
    entry = recommendations([{"app": "m:app"}], lambda _: found, ["p99<50ms"])[0]
    stored = json.loads(json.dumps(entry))
    assert stored == entry
    assert (stored["app"], stored["objective"]) == ("m:app", ["p99<50ms"])
    assert found_in(stored) == found


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The invented servers at the rates that the steadiest of them keeps up with, six runs of
    each."""
    directory = write_run(tmp_path_factory.mktemp("runs") / "six", runs=6)
    summary = read_summary(directory)
    summary["cells"] = [
        cell for cell in summary["cells"] if cell["rate"] == 1000 and cell["verdict"] is not None
    ]
    (directory / "summary.json").write_text(json.dumps(summary))
    return directory


def analysed(directory: Path, *slo: str) -> Json:
    return analyse(read_summary(directory), slo=slo)


@pytest.mark.parametrize("objective", ["p99<1s", "p99<1us"])
def test_summary_page_and_terminal_say_the_same(
    stored: Path, capsys: pytest.CaptureFixture[str], objective: str
) -> None:
    summary = analysed(stored, objective)
    assert list(Draft202012Validator(load_schema("summary-2")).iter_errors(summary)) == []
    wanted = parse_objective([objective])
    assert summary["experiment"]["slo"] == wanted.texts == [objective, "error_rate<=0.1%"]
    (entry,) = summary["recommendations"]
    assert found_in(entry) == recommend(summary["cells"], wanted)
    assert run(["report", str(stored), "--slo", objective]) == (0 if objective == "p99<1s" else 99)
    sentence = capsys.readouterr().out.splitlines()[-1]
    start = (
        "Recommended: "
        if objective == "p99<1s"
        else "No recommendation: no setting holds p99<1us and error_rate"
    )
    assert sentence.startswith(start)
    page = (stored / "report.html").read_text(encoding="utf-8")
    told = page.partition('<p class="recommendation">')[2].partition("</p>")[0]
    assert unescape(told.replace("<b>", "").replace("</b>", "")) == sentence


def test_a_stored_objective_is_judged_again_and_another_takes_its_place(stored: Path) -> None:
    summary = analysed(stored, "p99<1s")
    assert analyse(summary) == summary
    assert analyse({**summary, "recommendations": []}) == summary
    other = analyse(summary, slo=["p99<1us"])
    assert other["recommendations"][0]["refused"]["is_missed"]
    assert other["experiment"]["slo"][0] == "p99<1us"


def test_without_an_objective_nothing_is_recommended(stored: Path) -> None:
    summary = analysed(stored)
    assert (summary["recommendations"], summary["experiment"]["slo"]) == ([], None)
    assert '<p class="recommendation">' not in write_html(stored).read_text(encoding="utf-8")
