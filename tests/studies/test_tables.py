"""The tables in the style of other tools contain the figures of the cells, or dashes."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import msgspec
import pytest

from studies.runs import loads_of
from studies.tables import Style, tables_markdown, tool_tables
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.load_report import LoadReport
from wsgiload.report.cells import Sweep, read_sweep
from wsgiload.report.run_files import read_run

from ..unit.filled import outcomes, rates, resources, times, verdict
from ..unit.invented_cells import cell, invalid
from ..unit.report_fixture import read_load, summary_of, write_run

MS = 1_000_000
# From 1 to 100 ms.
TIMES = msgspec.structs.replace(times(*(ms * MS for ms in range(1, 101))), min=MS, max=100 * MS)


def closed_cell(name: str, connections: int | None, **changes: object) -> CellResult:
    plain: dict[str, object] = {
        "rate": None,
        "connections": connections,
        "rate_result": rates(250.04, achieved_per_s=260.0),
        "outcomes": outcomes(120, 100, refused=4, reset=2, stale=1, timeout=3, unfinished=10),
        "response_time_ns": TIMES,
        "resources": resources(cpu_cores_peak=1.5, memory_peak_bytes=9_000_000),
    }
    return cell(name, **plain | changes)


@pytest.fixture
def sweep() -> Sweep:
    cells = [
        closed_cell("a", 100),
        closed_cell("a", 200, rate_result=rates(500.0)),
        closed_cell("b", 100),
        invalid(closed_cell("b", 200)),
    ]
    return read_sweep(summary_of(cells, servers=("a", "b"), rates=None, connections=(100, 200)))


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> LoadReport:
    """A load report with the times of the cells."""
    directory = write_run(tmp_path_factory.mktemp("runs") / "run")
    return msgspec.structs.replace(read_load(directory, "waitress@1000#1"), response_time_ns=TIMES)


def test_appdynamics_has_a_block_for_each_figure(sweep: Sweep) -> None:
    blocks = {table.title: table for table in tool_tables("appdynamics", sweep, {})}
    assert [title.partition(" ")[0] for title in blocks] == [
        "REQUESTS",
        "LATENCIES",
        "CPU",
        "MEMORY",
        "ERRORS",
    ]

    requests, latencies, cpu, memory, errors = blocks.values()
    assert requests.headings == ("server", "100", "200")
    # An invalid run has no figure.
    assert requests.rows == (("a", "250.0", "500.0"), ("b", "250.0", "–"))
    assert latencies.rows[0][1] == "50.500"
    assert (cpu.rows[0][1], memory.rows[0][1]) == ("150", "9.0")
    # The 10 unfinished requests are not errors.
    assert errors.rows == (("a", "10", "10"), ("b", "10", "–"))


def test_funkload_has_low_percentiles_from_the_histogram(sweep: Sweep, load: LoadReport) -> None:
    first, second = tool_tables("funkload", sweep, {"a@c100#1": load})
    assert first.title == "a (times in ms)"
    row = dict(zip(first.headings, first.rows[0], strict=True))
    assert (row["CUs"], row["TOTAL"], row["SUCCESS"], row["ERROR"]) == ("100", "120", "100", "10")
    assert (row["MIN"], row["AVG"], row["MAX"]) == ("1.0", "50.5", "100.0")
    assert [round(float(row[name])) for name in ("P10", "MED", "P90", "P95")] == [10, 50, 90, 95]
    # This cell has no histogram.
    assert dict(zip(second.headings, second.rows[0], strict=True))["P10"] == "–"


def test_httperf_counts_errors_by_cause(load: LoadReport) -> None:
    one = closed_cell("a", None, rate=3000.0)
    sweep = read_sweep(summary_of([one], servers=("a",), rates=(3000.0,)))
    (table,) = tool_tables("httperf", sweep, {one.id: load})
    row = dict(zip(table.headings, table.rows[0], strict=True))
    assert (row["rate"], row["req/s"], row["errors"]) == ("3000", "260.0", "10")
    assert (row["client-timo"], row["connrefused"], row["connreset"]) == ("3", "4", "3")
    assert (row["fd-unavail"], row["other"]) == ("0", "0")
    assert round(float(row["median"])) == 50


def test_ab_has_a_row_for_each_concurrency(sweep: Sweep, load: LoadReport) -> None:
    table = tool_tables("ab", sweep, {"a@c100#1": load})[0]
    row = dict(zip(table.headings, table.rows[0], strict=True))
    assert row["Complete requests"] == "100"
    assert row["Requests per second"] == "250.04"
    assert row["100%"] == "100.0"


def test_several_runs_are_shown_as_their_median() -> None:
    runs = [closed_cell("a", 5, run=run, rate_result=rates(100.0 * run)) for run in (1, 2, 3)]
    sweep = read_sweep(summary_of(runs, servers=("a",), rates=None, connections=(5,), runs=3))
    assert tool_tables("appdynamics", sweep, {})[0].rows == (("a", "200.0"),)


def test_a_failed_server_has_no_figures() -> None:
    failed = closed_cell(
        "a", 5, rate_result=None, outcomes=None, response_time_ns=None, resources=None
    )
    failed = msgspec.structs.replace(failed, verdict=verdict("invalid", "server"))
    sweep = read_sweep(summary_of([failed], servers=("a",), rates=None, connections=(5,)))
    for style in get_args(Style):
        for table in tool_tables(style, sweep, {}):
            assert set(table.rows[0][1:]) == {"–"}


def test_markdown_has_each_table_under_its_title(sweep: Sweep) -> None:
    tables = tool_tables("appdynamics", sweep, {})
    lines = tables_markdown(tables).splitlines()
    assert lines[:2] == ["## REQUESTS (per second)", ""]
    assert lines[2:5] == ["| server | 100 | 200 |", "| --- | --- | --- |", "| a | 250.0 | 500.0 |"]


def test_a_stored_run_has_tables_in_every_style(tmp_path: Path) -> None:
    files = read_run(write_run(tmp_path / "run"))
    for style in get_args(Style):
        tables = tool_tables(style, read_sweep(files.summary), loads_of(files))
        assert all(len(row) == len(table.headings) for table in tables for row in table.rows)
