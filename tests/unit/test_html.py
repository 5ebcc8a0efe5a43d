"""The HTML report: complete, in order, self-contained, and without causal claims."""

from __future__ import annotations

import base64
import errno
import hashlib
import html
import os
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from jinja2 import Environment, PackageLoader

from wsgiload.documents.cell_result import AppliedLimits, CellFailure, CellResult
from wsgiload.documents.load_report import Bounds, LoadReport, Stalls
from wsgiload.documents.page_data import PageData
from wsgiload.documents.summary import Summary
from wsgiload.errors import UsageError
from wsgiload.report import page as page_of
from wsgiload.report import write_html
from wsgiload.report.answer import answer_of
from wsgiload.report.cells import read_sweep
from wsgiload.report.findings import (
    generator_facts,
    limit_facts,
    resource_caption,
    response_time_caption,
)
from wsgiload.report.grids import Grid
from wsgiload.report.run_files import digest_of

from .report_fixture import read_load, read_summary, store_summary, write_many, write_run

replace = msgspec.structs.replace

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-"


def only(summary: Summary, *cells: CellResult) -> Summary:
    """The same experiment with only these cells."""
    return replace(summary, cells=cells)


class Page(HTMLParser):
    """The tags and the visible text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._hidden = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._hidden += tag in ("style", "script")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("style", "script")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture(scope="module")
def source(run_dir: Path) -> str:
    path = write_html(run_dir)
    assert path == run_dir / "report.html"
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(source: str) -> Page:
    return Page(source)


def test_sections_and_charts_are_in_order(page: Page) -> None:
    sections = [attributes["id"] for attributes in page.named("section")]
    assert sections == [
        "answer",
        "curves",
        "validity",
        "time",
        "errors",
        "cells",
        "plan",
        "raw",
    ]

    figures = [attributes["id"] for attributes in page.named("figure")]
    assert figures[:5] == ["response-time", "goodput", "resources", "spectrum", "tail"]
    assert len(figures) == 5 + 23


def test_the_page_loads_no_external_resources(source: str, page: Page) -> None:
    assert not {"link", "iframe", "object", "img"} & {tag for tag, _ in page.tags}
    for _, attributes in page.tags:
        assert not any(name.startswith("on") for name in attributes)
        for name in ("src", "href", "xlink:href"):
            assert (attributes.get(name) or "#").startswith(("#", "data:"))
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", source))
    assert re.findall(r"https?://[^\s\"'<)]+", source) == []
    assert "@import" not in source


def test_the_page_allows_only_its_own_script(source: str, page: Page) -> None:
    assert page.named("script") == [{"type": "application/json", "id": "page-data"}, {}]

    script = source.rpartition("<script>")[2].partition("</script>")[0]
    (policy,) = [
        tag["content"] or ""
        for tag in page.named("meta")
        if tag.get("http-equiv") == "Content-Security-Policy"
    ]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()

    assert policy == f"{POLICY}{digest}'"


def data_of(source: str) -> PageData:
    """The data that the script of a page draws."""
    text = source.partition('id="page-data">')[2].partition("</script>")[0]
    return msgspec.json.decode(text, type=PageData)


def test_every_chart_has_a_finding_and_its_data(source: str) -> None:
    figures = re.findall(r"<figure.*?</figure>", source, flags=re.DOTALL)
    for figure in figures:
        caption = re.search(r"<figcaption><b>(.+?)</b>", figure, flags=re.DOTALL)
        assert caption and caption.group(1).endswith(".")
        assert figure.count('<div class="chart">') == 1
        assert re.search(
            r"<details class=\"data\"><summary>Data</summary>.*<tbody>\s*<tr",
            figure,
            flags=re.DOTALL,
        )
    data = data_of(source)
    assert data.breakdown is not None
    names = [chart.name for chart in (*data.charts, data.breakdown, *data.timelines)]
    assert [re.findall('id="([^"]*)"', figure)[0] for figure in figures] == names


@pytest.mark.parametrize(
    ("servers", "timelines", "max_bytes"), [(9, 81, 1_000_000), (30, 90, 3_000_000)]
)
def test_a_page_stays_small(tmp_path: Path, servers: int, timelines: int, max_bytes: int) -> None:
    """Under 1 MB for nine servers and under 3 MB for thirty, also with several runs."""
    path = write_html(write_many(tmp_path / "run", servers))
    data = data_of(path.read_text(encoding="utf-8"))
    assert (len(data.servers), len(data.timelines)) == (servers, timelines)
    assert path.stat().st_size < max_bytes


def test_the_name_of_a_server_cannot_end_the_script() -> None:
    name = "a</script>&\x1b[2J\u202e\udc80"
    data = page_of.nothing_drawn((name,))
    text = page_of.embedded(data)
    assert not set("<>&") & set(text) and text.isascii()
    shown = msgspec.json.decode(text, type=PageData).servers
    assert shown == (r"a</script>&\x1b[2J\u202e\udc80",)


def test_element_ids_are_unique(page: Page) -> None:
    identifiers = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(identifiers) == len(set(identifiers))


def test_the_verdict_is_stated_in_sentences(page: Page) -> None:
    assert (
        "Which of 8 servers has the lowest p99 at 3,000/s with 2 CPUs and 512 MiB? In 1 run, "
        "gunicorn-gevent had the lowest p99 at 3,000/s, 5.31 ms "
        "[95 % CI 5.15 ms, 5.53 ms]."
    ) in page.text
    assert "wsgiref is the first not to sustain the rate, at 2,000/s." in page.text
    assert "uwsgi at 3,000/s has no valid result (trials disturbed)" in page.text
    assert (
        "sustained 2,000/s (p99 12.9 ms, 1.60 CPU cores); at 3,000/s, 77.9 % of requests got a "
        "correct response (goodput 2,330/s), p99 >= 1.00 s; this coincided with CPU throttling in "
        "41.4 % of the periods."
    ) in page.text
    assert (
        "cheroot at 3,000/s failed and is not ranked: no correct response within 30 s. The "
        "process ended with code 1"
    ) in page.text


def test_the_validity_section_lists_each_warning_once(page: Page) -> None:
    assert "24 trials: 19 valid, 3 warn, 1 invalid, 1 failed." in page.text
    assert (
        page.text.count("keep-alive not honoured: measured with a new connection per request") == 1
    )
    assert page.text.count("the generator's own lateness moved p99 by 8.3 %") == 1


def stalls_of(count: int, longest_ns: int) -> Stalls:
    return Stalls(count=count, total_ns=longest_ns, longest_ns=longest_ns, arrivals=0, responses=0)


def with_client(load: LoadReport, **changes: object) -> LoadReport:
    """The same load with other generator metrics."""
    assert load.client is not None
    return replace(load, client=replace(load.client, **changes))


@pytest.mark.parametrize(
    ("stalls", "sentence"),
    [
        ((0, 0), "The generator had no event-loop stalls."),
        (
            (2, 7_000_000),
            "The generator had 3 event-loop stalls across all trials, the longest 9.00 ms.",
        ),
    ],
)
def test_the_worst_generator_metrics_are_shown(
    run_dir: Path, stalls: tuple[int, int], sentence: str
) -> None:
    load = read_load(run_dir, "waitress@3000#1")
    one = with_client(
        load,
        cpu_per_request_ns=30_000.0,
        busy_share=0.4,
        run_queue_wait_ns=None,
        stalls=stalls_of(min(stalls[0], 1), 9_000_000 if stalls[0] else 0),
    )
    other = with_client(
        load,
        cpu_per_request_ns=None,
        busy_share=0.1,
        run_queue_wait_ns=4_000_000,
        stalls=stalls_of(*stalls),
    )
    reports = {"a": one, "b": other, "c": replace(load, client=None)}
    loads = {cell: digest_of(report) for cell, report in reports.items()}
    facts = generator_facts(read_sweep(only(read_summary(run_dir))), loads)

    assert facts[-4:] == [
        "Generator run-queue wait: at most 4.00 ms per trial.",
        "Generator CPU utilization: at most 40.0 % (busiest thread).",
        "Generator CPU time per response: at most 30.0 µs.",
        sentence,
    ]


def test_a_failure_of_the_generator_is_not_attributed_to_the_server(
    tmp_path: Path, source: str
) -> None:
    assert "cheroot at 3,000/s failed and is not ranked" in source

    run = write_run(tmp_path / "run")
    summary = read_summary(run)
    (failed,) = [cell for cell in summary.cells if cell.failure is not None]
    assert failed.verdict is not None
    blamed = replace(
        failed,
        verdict=replace(failed.verdict, blame="client"),
        failure=CellFailure(step="load", message="it ended with code 1", log_tail=None),
    )
    store_summary(
        run, only(summary, *(blamed if cell is failed else cell for cell in summary.cells))
    )
    changed = write_html(run).read_text(encoding="utf-8")

    text = Page(changed).text
    assert "24 trials: 19 valid, 3 warn, 2 invalid." in text

    assert "invalid: client, failed: load: it ended with code 1" in text


UNLIMITED = AppliedLimits(
    backend="none",
    cpus=None,
    memory_bytes=None,
    pids=None,
    server_cpus=None,
    client_cpus=None,
    read_back={},
    not_enforced=(),
)


@pytest.mark.parametrize(
    ("limits", "sentences"),
    [
        ({"backend": "none", "not_enforced": ()}, ["No limits were set."]),
        (
            {"backend": "none", "not_enforced": ("memory",)},
            ["Limit backend: none.", "Not enforced: memory."],
        ),
        (
            {"backend": "cgroup-v2", "cpus": 1.0, "not_enforced": ()},
            ["Limit backend: cgroup-v2.", "All limits were enforced."],
        ),
        ({"backend": "cgroup-v2", "not_enforced": ()}, ["No limits were set."]),
        (None, ["Limits: not measured."]),
    ],
)
def test_the_limit_facts_state_what_was_enforced(
    run_dir: Path, limits: Mapping[str, object] | None, sentences: list[str]
) -> None:
    summary = read_summary(run_dir)
    applied = None if limits is None else replace(UNLIMITED, **limits)
    cell = replace(summary.cells[0], limits=applied)
    assert limit_facts(read_sweep(only(summary, cell))) == sentences


def test_the_page_makes_no_causal_claims(page: Page) -> None:
    assert not re.search(
        r"\b(because|due to|caused? by|bottleneck|thanks to|owing to)\b", page.text, re.IGNORECASE
    )
    assert "coincided with" in page.text


def test_every_title_names_the_conditions(source: str, page: Page) -> None:
    subtitle = (
        "Poisson arrivals · a new connection when all connections are busy · 20 s measured after 5 s "
        "warm-up · "
    )
    assert page.text.count(subtitle + "1 run ") == 6  # the head of the page and five charts
    assert page.text.count(subtitle + "run 1 · ") == 23
    assert all(subtitle in chart.label for chart in data_of(source).charts)


def test_small_raw_files_are_embedded(run_dir: Path, page: Page) -> None:
    links = {tag["download"]: tag["href"] or "" for tag in page.named("a") if "download" in tag}
    assert set(links) == {"run.json", "intervals.csv"}
    assert re.search(r"resources\.csv \([0-9.]+ KiB, in the same folder as this page\)", page.text)
    assert re.search(r"summary\.json \([0-9.]+ KiB, in the same folder as this page\)", page.text)
    for name, link in links.items():
        kind, _, data = str(link).partition(";base64,")
        assert kind in ("data:application/json", "data:text/csv")
        assert base64.b64decode(data) == (run_dir / str(name)).read_bytes()


def test_the_page_is_reproducible(run_dir: Path, source: str) -> None:
    assert write_html(run_dir).read_text(encoding="utf-8") == source
    assert not (run_dir / "report.html.tmp").exists()


HOSTILE = "</script><script>alert(1)</script><!--"


def test_names_and_messages_are_escaped(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    summary = read_summary(run)
    hostile = replace(summary.cells[0], server=HOSTILE, variant=None, notes=(HOSTILE,))
    store_summary(run, only(summary, hostile))
    text = write_html(run).read_text(encoding="utf-8")
    assert html.escape(HOSTILE) in text and HOSTILE not in text
    assert text.count("<script") == text.count("</script") == 2 and "alert(1)</script" not in text
    assert data_of(text).servers == (HOSTILE,)


def test_an_interrupted_experiment_with_several_runs_is_shown(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", runs=4)
    summary = read_summary(run)
    of_one = [cell for cell in summary.cells if cell.server == "waitress"]
    store_summary(run, replace(only(summary, *of_one), status="interrupted"))
    page = Page(write_html(run).read_text(encoding="utf-8"))
    assert "interrupted: some cells were not measured" in page.text
    assert "cannot rank" not in page.text


def with_limits(cell: CellResult, **changes: object) -> CellResult:
    """The same cell under other limits."""
    assert cell.limits is not None
    return replace(cell, limits=replace(cell.limits, **changes))


@pytest.mark.parametrize(
    ("limits", "suffix", "of_limit"),
    [
        ({"cpus": None, "memory_bytes": None, "pids": None}, "", ""),
        ({"backend": "none", "not_enforced": ("cpus", "memory", "pids")}, "", ""),
        ({"not_enforced": ("memory",)}, " with 2 CPUs", " of 2"),
        ({"not_enforced": ("cpus",)}, " with 512 MiB", ""),
    ],
)
def test_only_enforced_limits_are_named(
    run_dir: Path, limits: Mapping[str, object], suffix: str, of_limit: str
) -> None:
    summary = read_summary(run_dir)
    cells = [with_limits(cell, **limits) for cell in summary.cells]
    limited = only(summary, *cells)
    sweep = read_sweep(limited)
    assert answer_of(limited).question.endswith(f" at 3,000/s{suffix}?")
    assert re.search(rf"between [0-9.]+ and [0-9.]+{of_limit} CPU cores\.", resource_caption(sweep))
    one_differs = only(summary, *summary.cells[:-1], cells[-1])
    assert answer_of(one_differs).question.endswith(f" at 3,000/s{suffix}?")


def test_cpu_use_is_a_range_only_if_servers_differ(run_dir: Path) -> None:
    summary = read_summary(run_dir)
    first = summary.cells[0]
    of_one = [cell for cell in summary.cells if cell.server == first.server]
    of_two = [*of_one, *(replace(cell, server="another") for cell in of_one)]
    one_sentence = rf"{first.server} used [0-9.]+ of 2 CPU cores\."
    both_sentence = r"the servers used [0-9.]+ of 2 CPU cores each\."
    for cells, sentence in ((of_one, one_sentence), (of_two, both_sentence)):
        assert re.search(sentence, resource_caption(read_sweep(only(summary, *cells))))


def test_p99_growth_is_compared_only_between_servers_whose_p99_grew(run_dir: Path) -> None:
    summary = read_summary(run_dir)
    of_waitress = [cell for cell in summary.cells if cell.server == "waitress" and not cell.failure]
    assert len({cell.rate for cell in of_waitress}) > 1

    lowest = min(of_waitress, key=lambda cell: cell.rate or 0)

    def caption_of(servers: tuple[str, ...], flat: bool) -> str:
        measured = [
            replace(cell, offered_quantiles_ns=lowest.offered_quantiles_ns) if flat else cell
            for cell in of_waitress
        ]
        cells = [replace(cell, server=server) for server in servers for cell in measured]
        return response_time_caption(read_sweep(only(summary, *cells)))

    assert re.search(
        r"p99 increased for waitress \([0-9.]+×\)\.$", caption_of(("waitress",), flat=False)
    )
    assert re.search(
        r"p99 increased most for waitress \([0-9.]+×\)\.$",
        caption_of(("bjoern", "waitress"), flat=False),
    )
    assert caption_of(("waitress",), flat=True).endswith("p99 did not increase for waitress.")
    assert caption_of(("bjoern", "waitress"), flat=True).endswith(
        "p99 did not increase for any server measured at both."
    )


def test_a_sweep_without_results_has_a_page(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    summary = read_summary(run)
    store_summary(run, only(summary, *(cell for cell in summary.cells if cell.failure)))
    for name in ("intervals.csv", "resources.csv"):
        (run / name).unlink()
    text = Page(write_html(run).read_text(encoding="utf-8")).text

    assert (
        "How does cheroot perform at 3,000/s with 2 CPUs and 512 MiB? "
        "No server sustained any tested load level (1 failed)." in text
    )
    assert "intervals.csv (not written by this run)" in text


def test_a_closed_loop_is_described_by_its_connections(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", closed_loop=True)
    text = Page(write_html(run).read_text(encoding="utf-8")).text
    assert "hello /: 8 servers, 100 to 300 connections" in text
    assert "A number of connections is sustained if every run has at least" in text


def test_a_directory_without_a_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"summary\.json cannot be read: .*; name a run directory"):
        write_html(tmp_path)


def test_the_grid_shows_the_median_of_runs_with_few_requests(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", runs=3)
    summary = read_summary(directory)
    p99_ns = {1: 9_000_000, 2: 2_000_000, 3: 4_000_000}
    few = [
        replace(
            cell,
            outcomes=replace(cell.outcomes, scheduled=200, ok=200),
            offered_quantiles_ns={"0.99": Bounds(low=p99_ns[cell.run], high=p99_ns[cell.run])},
        )
        for cell in summary.cells
        if cell.server == "waitress" and cell.outcomes is not None
    ]
    store_summary(directory, replace(summary, cells=tuple(few)))
    text = Page(write_html(directory).read_text()).text

    assert "≈ 4.00 ms" in text.partition("Markdown version")[0]


def test_a_page_on_a_full_disk_names_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(page_of, "replace_file", full)
    with pytest.raises(UsageError, match=r"cannot write .*/report.html: No space left on device"):
        page_of.write(tmp_path / "report.html", "")


def test_rows_of_a_large_table_are_text_until_it_is_opened() -> None:
    def table(rows: int) -> str:
        environment = Environment(loader=PackageLoader("wsgiload.report", ""), autoescape=True)
        grid = Grid(("server", "p99"), (("</script>", "1 ms"),) * rows)
        return str(environment.get_template("macros.html.j2").module.fields_grid(grid))  # type: ignore[attr-defined]

    assert "<script" not in table(1000)
    large = table(1001)
    assert large.count('<script type="text/html" class="rows">') == large.count("</script>") == 1
    assert (
        large.index("<script")
        < large.index("<td>")
        < large.rindex("<td>")
        < large.index("</script>")
    )
