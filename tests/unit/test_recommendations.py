"""A recommendation is the same in summary.json, on the page and on the terminal."""

from __future__ import annotations

from html import unescape
from pathlib import Path

import msgspec
import pytest
from jsonschema import Draft202012Validator

from wsgiload.analysis.objective import parse_objective
from wsgiload.analysis.over_cells import analyse
from wsgiload.analysis.recommend import recommend
from wsgiload.analysis.recommendations import recommendations
from wsgiload.cli import run
from wsgiload.documents.answer import MemoryHeadroom, NoRecommendation, RecommendedConfiguration
from wsgiload.documents.codec import decode, encode, to_plain
from wsgiload.documents.schema import load_schema
from wsgiload.documents.summary import Summary
from wsgiload.report import write_html
from wsgiload.report.answer import answer_of

from .filled import filled_cell, filled_summary
from .report_fixture import read_summary, store_summary, write_run

replace = msgspec.structs.replace

CERTAIN = RecommendedConfiguration(
    server="a-w2",
    rate_per_s=300.0,
    figure="p99",
    estimate=2e6,
    interval_95=(1e6, 3e6),
    runs=6,
    disturbed=1,
    memory=MemoryHeadroom(peak_bytes=2**25, limit_bytes=2**29),
    runner_up=None,
    tied=("a-w4", "a-w8"),
    min_requests_beyond=None,
)
RESULTS = [
    CERTAIN,
    replace(
        CERTAIN,
        server="b",
        figure="error_rate",
        estimate=None,
        interval_95=None,
        memory=MemoryHeadroom(peak_bytes=None, limit_bytes=None),
        runner_up="c",
        tied=(),
    ),
    NoRecommendation(
        reason="b at 200/s is undecided: met in 4 of 6 runs", needs="use --runs 12", is_missed=False
    ),
    NoRecommendation(
        reason="no configuration meets p99<1ms at 100/s", needs="use lower --rates", is_missed=True
    ),
]


@pytest.mark.parametrize("result", RESULTS)
def test_a_recommendation_is_stored_unchanged(
    result: RecommendedConfiguration | NoRecommendation,
) -> None:
    (entry,) = recommendations([filled_cell(app="m:app")], lambda _: result, ["p99<50ms"])
    assert (entry.app, entry.objective) == ("m:app", ("p99<50ms",))
    assert (entry.recommended or entry.no_recommendation) == result
    assert (entry.recommended is None) == isinstance(result, NoRecommendation)

    summary = filled_summary({}, [], recommendations=(entry,))
    assert decode(Summary, encode(summary), "the summary").recommendations == (entry,)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stored sweep of six runs of each server at 1,000/s."""
    directory = write_run(tmp_path_factory.mktemp("runs") / "six", runs=6)
    summary = read_summary(directory)
    cells = [cell for cell in summary.cells if cell.rate == 1000 and cell.verdict is not None]
    store_summary(directory, replace(summary, cells=tuple(cells)))
    return directory


def analysed(directory: Path, *slo: str) -> Summary:
    return analyse(read_summary(directory), slo=slo)


@pytest.mark.parametrize("objective", ["p99<1s", "p99<1us"])
def test_summary_page_and_terminal_agree(
    stored: Path, capsys: pytest.CaptureFixture[str], objective: str
) -> None:
    summary = analysed(stored, objective)
    assert list(Draft202012Validator(load_schema("summary-1")).iter_errors(to_plain(summary))) == []

    parsed = parse_objective([objective])
    assert parsed.texts == [objective, "error_rate<=0.1%"]
    assert summary.experiment.slo == tuple(parsed.texts)

    (entry,) = summary.recommendations or ()
    assert (entry.recommended or entry.no_recommendation) == recommend(summary.cells, parsed)

    assert run(["report", str(stored), "--slo", objective]) == (0 if objective == "p99<1s" else 99)
    sentence = answer_of(summary).sentence
    assert sentence in " ".join(capsys.readouterr().out.split())

    start = (
        "Recommended: "
        if objective == "p99<1s"
        else "No recommendation: no configuration meets p99<1us and error_rate"
    )
    assert sentence.startswith(start)

    page = (stored / "report.html").read_text(encoding="utf-8")
    lead = page.partition('<p class="lead">')[2].partition("</p>")[0]
    assert unescape(lead) == sentence


def test_a_stored_objective_is_evaluated_again_unless_another_is_given(stored: Path) -> None:
    summary = analysed(stored, "p99<1s")
    assert analyse(summary) == summary
    assert analyse(replace(summary, recommendations=())) == summary
    other = analyse(summary, slo=["p99<1us"])
    (entry,) = other.recommendations or ()
    assert entry.no_recommendation is not None
    assert entry.no_recommendation.is_missed
    assert other.experiment.slo == ("p99<1us", "error_rate<=0.1%")


def test_without_an_objective_nothing_is_recommended(stored: Path) -> None:
    summary = analysed(stored)
    assert (summary.recommendations, summary.experiment.slo) == ((), None)
    assert '<p class="recommendation">' not in write_html(stored).read_text(encoding="utf-8")
