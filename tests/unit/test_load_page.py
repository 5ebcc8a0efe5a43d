"""The page of one load: its first screen, its charts with tables, and parts that it omits."""

from __future__ import annotations

import re

import msgspec
import pytest

from wsgiload.documents.load_report import LoadReport, Outcomes, RequestCounts
from wsgiload.documents.page_data import PageData
from wsgiload.report import load_page
from wsgiload.report.load_screen import load_screen
from wsgiload.report.page import MAX_DOWNLOAD_BYTES
from wsgiload.report.run_files import SampleRow

from .report_fixture import EPOCH_NS, make_cell

replace = msgspec.structs.replace


def load_of(server: str = "waitress", rate: int = 2000) -> LoadReport:
    return msgspec.convert(make_cell(server, rate, 1)[1], LoadReport)


def data_of(source: str) -> PageData:
    match = re.search(r'id="page-data">(.*?)</script>', source, flags=re.DOTALL)
    assert match
    return msgspec.json.decode(match[1], type=PageData)


def test_the_result_is_p99_with_its_interval_and_the_share_of_correct_responses() -> None:
    screen = load_screen(load_of())
    assert screen.question == "How does http://127.0.0.1:8000/ respond at 2,000/s?"
    assert re.fullmatch(
        r"p99 is [\d.]+ ms \(95 % CI [\d.]+ ms to [\d.]+ ms\)\. 100 % of [\d,]+ requests got a "
        r"correct response \(goodput [\d,]+/s\)\.",
        screen.sentence,
    )

    (rates, _), (times, rows) = screen.tables
    assert rates[:4] == ["offered", "sent", "achieved", "goodput"]
    assert times[0] == "time" and rows[0][0] == "response time"
    assert f"**{screen.question}**" in screen.markdown


@pytest.mark.parametrize(
    ("load", "start"),
    [
        (load_of("uwsgi", 3000), "The measurement is invalid: client (send-lag), so its figures"),
        (load_of("wsgiref", 3000), "The server does not sustain this rate"),
        (
            replace(
                load_of(),
                outcomes=Outcomes(
                    **dict.fromkeys(Outcomes.__struct_fields__, 0)
                    | {"scheduled": 30, "refused": 30}
                ),
            ),
            "No request got a correct response (refused: 30).",
        ),
    ],
    ids=["invalid", "overloaded", "refused"],
)
def test_a_load_without_a_usable_result_states_no_p99(load: LoadReport, start: str) -> None:
    sentence = load_screen(load).sentence
    assert sentence.startswith(start)
    assert "p99 is" not in sentence


def test_the_findings_are_warnings_of_which_at_most_five_are_shown() -> None:
    load = load_of("uwsgi", 3000)
    assert "the generator's own lateness moved p99" in load_screen(load).cautions[0]
    many = replace(load.verdict, reasons=load.verdict.reasons * 7)
    cautions = load_screen(replace(load, verdict=many)).cautions
    assert len(cautions) == 5 and cautions[-1].endswith(
        "more warnings: see --verbose or the HTML report"
    )


def test_the_page_has_its_parts_in_order_and_a_table_under_each_chart() -> None:
    source = load_page.render(load_of())
    parts = ["answer", "curves", "spectrum", "time-0", "validity", "errors", "plan", "raw"]
    positions = [source.index(f'id="{part}"') for part in parts]

    assert positions == sorted(positions)

    data = data_of(source)
    assert ([chart.name for chart in data.charts], [chart.name for chart in data.timelines]) == (
        ["spectrum"],
        ["time-0"],
    )

    figures = re.findall(r"<figure.*?</figure>", source, flags=re.DOTALL)
    assert len(figures) == 2
    assert all("<tbody>" in figure for figure in figures)


def test_samples_of_an_attached_server_are_drawn_over_time() -> None:
    assert data_of(load_page.render(load_of())).timelines[0].uses.cores == ()
    samples = [
        SampleRow(t_ns=EPOCH_NS + second * 10**9, cpu_usage_ns=second * 5 * 10**8)
        for second in range(10)
    ]
    (timeline,) = data_of(load_page.render(load_of(), samples)).timelines
    assert set(timeline.uses.cores) == {0.5}


def test_only_the_slowest_of_many_requests_are_shown() -> None:
    targets = tuple(
        RequestCounts(
            name=f"GET /{index}", scheduled=10, ok=10, failed=0, p50_ns=1, p99_ns=index, max_ns=9
        )
        for index in range(load_page.MAX_REQUESTS + 5)
    )
    source = load_page.render(replace(load_of(), targets=targets))

    note = "requests with the highest p99"
    assert f"{load_page.MAX_REQUESTS} of {len(targets)} {note}" in source
    assert "GET /204<" in source and "GET /4<" not in source

    few = load_page.render(replace(load_of(), targets=targets[:2]))
    assert "GET /1<" in few and note not in few


def test_a_small_report_is_embedded() -> None:
    assert 'download="load.json"' in load_page.render(load_of())
    load = load_of()
    assert load.response_time_ns is not None
    large = replace(load.response_time_ns, hdr_v2="A" * MAX_DOWNLOAD_BYTES)
    source = load_page.render(replace(load, service_time_ns=large))
    assert 'download="load.json"' not in source and "--json FILE writes it" in source


def test_text_from_a_url_is_escaped() -> None:
    load = load_of()
    url = "http://127.0.0.1/</script><img src=x>"
    source = load_page.render(replace(load, plan=replace(load.plan, url=url)))
    assert "<img" not in source and source.count("</script>") == 2
