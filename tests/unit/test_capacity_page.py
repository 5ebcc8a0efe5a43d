"""The HTML page of a capacity search: its first screen, charts and tables."""

from __future__ import annotations

import html
import re
from pathlib import Path

import msgspec
import pytest

from wsgiload.cli import run as run_command
from wsgiload.documents.capacity import CapacityResult, ServerCapacity
from wsgiload.documents.codec import read
from wsgiload.documents.page_data import PageData
from wsgiload.report import write_html
from wsgiload.report.answer_box import AnswerBox
from wsgiload.report.capacity import capacity_screen

from .capacity_fixture import SERVERS, write_search
from .report_fixture import read_summary

replace = msgspec.structs.replace


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_search(tmp_path_factory.mktemp("runs") / "search")


@pytest.fixture(scope="module")
def document(run_dir: Path) -> CapacityResult:
    return read(CapacityResult, run_dir / "capacity.json")


@pytest.fixture(scope="module")
def source(run_dir: Path) -> str:
    return write_html(run_dir).read_text(encoding="utf-8")


def data_of(source: str) -> PageData:
    match = re.search(r'id="page-data">(.*?)</script>', source, flags=re.DOTALL)
    assert match
    return msgspec.json.decode(match[1], type=PageData)


def server_of(document: CapacityResult, name: str) -> ServerCapacity:
    return next(server for server in document.servers if server.server == name)


def screen(document: CapacityResult, *servers: ServerCapacity) -> AnswerBox:
    return capacity_screen(replace(document, servers=servers), None)


def test_the_first_screen_ranks_the_servers(run_dir: Path, document: CapacityResult) -> None:
    box = capacity_screen(document, read_summary(run_dir))

    assert box.question == (
        "Which of 3 servers meets p99<20ms and error_rate<=0.1% at the highest rate with 2 CPUs "
        "and 512 MiB?"
    )
    assert re.match(
        r"gunicorn-gthread meets the objective at up to 2,\d{3}/s \(95 % CI ", box.sentence
    )

    ((headings, rows),) = box.tables
    assert [row[headings.index("server")] for row in rows] == [
        "gunicorn-gthread",
        "waitress",
        "wsgiref",
    ]
    assert [row[headings.index("confirmed")] for row in rows] == ["3 of 3", "2 of 2", "–"]

    assert len(box.cautions) <= 5
    assert f"**{box.question}**" in box.markdown and "| waitress |" in box.markdown


def test_servers_with_overlapping_intervals_share_a_rank(document: CapacityResult) -> None:
    best = replace(document.servers[0], server="a", rate_per_s=300.0, interval_95=(290.0, 310.0))
    near = replace(best, server="b", rate_per_s=295.0, interval_95=(280.0, 305.0))
    far = replace(best, server="c", rate_per_s=200.0, interval_95=(190.0, 210.0))
    no_rate = replace(best, server="d", rate_per_s=None, interval_95=None)

    box = screen(document, no_rate, far, near, best)
    assert [row[:2] for row in box.tables[0][1]] == [
        ["1=", "a"],
        ["1=", "b"],
        ["3", "c"],
        ["–", "d"],
    ]

    assert (
        "; this is 1.02× the rate of b (295/s), but the confidence interval of a overlaps with that of "
        "b, so the "
        "order is uncertain." in box.sentence
    )
    assert "overlap" not in screen(document, best, far).sentence


def test_a_search_without_a_rate_is_reported(document: CapacityResult) -> None:
    missed = {"rate_per_s": None, "interval_95": None, "bracket": (None, 200.0)}
    no_rate = replace(document.servers[0], **missed)
    assert screen(document, no_rate).sentence == (
        "No rate was found at which waitress meets the objective."
    )
    assert screen(document, no_rate, replace(no_rate, server="b")).sentence == (
        "No rate was found at which any server meets the objective."
    )


def test_apps_are_not_ranked_against_each_other(document: CapacityResult) -> None:
    one = replace(document.servers[0], app="hello", rate_per_s=300.0)
    other = replace(one, app="cpu", rate_per_s=20.0)
    box = screen(document, one, other)
    assert [rows[0][0] for _, rows in box.tables] == ["1", "1"]
    assert "hello: waitress meets" in box.sentence and "cpu: waitress meets" in box.sentence


def test_every_trial_is_in_the_chart_and_in_the_table(
    document: CapacityResult, source: str
) -> None:
    data = data_of(source)
    assert [search.name for search in data.searches] == ["search-0", "search-1", "search-2"]
    for search, server in zip(data.searches, document.servers, strict=True):
        open_loop = [trial for trial in server.trials if trial.rate_per_s is not None]
        assert [trial.rate_per_s for trial in search.trials] == [
            trial.rate_per_s for trial in open_loop
        ]
        assert (search.bracket, search.rate_per_s) == (server.bracket, server.rate_per_s)

        figure = source[source.index(f'<figure id="{search.name}"') :].partition("</figure>")[0]
        figure = html.unescape(figure)
        assert figure.count("<tr") == 1 + len(server.trials)
        for trial in search.trials:
            assert all(text in figure for text in trial.texts)


def test_the_chart_has_the_conditions_and_figures_of_the_trials(source: str) -> None:
    search = data_of(source).searches[0]
    assert [
        (condition.title, condition.unit, condition.limit, condition.label)
        for condition in search.conditions
    ] == [
        ("p99", "ns", 20e6, "p99<20ms"),
        ("failed", "ratio", 0.001, "error_rate<=0.1%"),
    ]

    for trial in search.trials:
        p99_ns, failed = trial.values
        meets = p99_ns is not None and p99_ns < 20e6 and failed is not None and failed <= 0.001
        if trial.outcome != "inconclusive":
            assert (trial.outcome == "met") == meets

    assert [trial.number for trial in search.trials if trial.is_repeated] == [4]


def test_the_page_has_ordered_sections_and_needs_no_summary(tmp_path: Path, source: str) -> None:
    sections = ['id="answer"', 'id="searches"', 'id="validity"', 'id="plan"', 'id="raw"']
    positions = [source.index(section) for section in sections]
    assert positions == sorted(positions)

    url = "http://127.0.0.1:8000/"
    page = write_html(write_search(tmp_path / "url", ("waitress",), url))
    text = page.read_text(encoding="utf-8")
    assert f"What is the highest rate at which {url} meets p99&lt;20ms" in text
    assert f"{url} meets the objective at up to " in text
    assert len(data_of(text).searches) == 1


def test_report_shows_a_search_and_writes_its_page(
    run_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run_dir / "report.html").unlink(missing_ok=True)
    assert run_command(["report", "--verbose", str(run_dir)]) == 0

    output = capsys.readouterr().out
    assert all(name in output for name in SERVERS) and "bracket" in output
    assert f"report: {run_dir / 'report.html'}" in output
    assert data_of((run_dir / "report.html").read_text(encoding="utf-8")).searches
