"""The breakdown of the slowest requests into parts, over valid runs only."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from wsgiload.documents.load_report import Flights, LoadReport
from wsgiload.report import breakdown
from wsgiload.report.cells import Sweep, read_sweep
from wsgiload.report.run_files import LoadDigest, RunFiles, digest_of, read_run

from .report_fixture import read_load, write_run

MS = 1_000_000
START = 5_000 * MS


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> RunFiles:
    return read_run(write_run(tmp_path_factory.mktemp("runs") / "run", runs=2))


@pytest.fixture(scope="module")
def sweep(files: RunFiles) -> Sweep:
    return read_sweep(files.summary)


def with_flights(
    load: LoadReport, *slowest: tuple[int, tuple[int, int, int, int] | None]
) -> LoadReport:
    """The load with these response times and parts of its slowest requests."""
    flights = Flights(
        slowest=tuple((START, START + length) for length, _ in slowest),
        slowest_parts=tuple(parts for _, parts in slowest),
        sample=((START, START + MS),),
    )
    return msgspec.structs.replace(load, flights=flights)


def two_runs(files: RunFiles, first: LoadReport, second: LoadReport) -> dict[str, LoadDigest]:
    both = {"waitress@1000#1": digest_of(first), "waitress@1000#2": digest_of(second)}
    return {**files.loads, **both}


def test_the_parts_and_the_send_lag_add_up_to_the_response_time(
    sweep: Sweep, files: RunFiles
) -> None:
    load = read_load(files.directory, "waitress@1000#1")
    first = with_flights(load, (100 * MS, (10 * MS, 0, 70 * MS, 15 * MS)))
    second = with_flights(load, (300 * MS, (0, 20 * MS, 270 * MS, 5 * MS)), (400 * MS, None))

    breakdowns = breakdown.breakdowns(sweep, two_runs(files, first, second))
    bar = next(bar for bar in breakdowns if (bar.label, bar.load) == ("waitress", 1000))
    assert (bar.requests, bar.failed) == (2, 1)
    assert bar.means_ns == (5 * MS, 10 * MS, 170 * MS, 10 * MS, 5 * MS)
    assert sum(bar.means_ns) == 200 * MS
    assert bar.largest == "first byte"


def test_unknown_parts_have_no_bar(sweep: Sweep, files: RunFiles) -> None:
    load = read_load(files.directory, "waitress@1000#1")
    without_parts = with_flights(load)
    failures = with_flights(load, (400 * MS, None))

    for report in (without_parts, failures, msgspec.structs.replace(load, flights=None)):
        breakdowns = breakdown.breakdowns(sweep, two_runs(files, report, report))
        assert not [bar for bar in breakdowns if (bar.label, bar.load) == ("waitress", 1000)]
    assert breakdown.breakdowns(sweep, {}) == []
    assert breakdown.drawn(sweep, []) is None


def test_an_invalid_run_is_omitted(sweep: Sweep, files: RunFiles) -> None:
    breakdowns = breakdown.breakdowns(sweep, files.loads)
    assert ("uwsgi", 2000) in {(bar.label, bar.load) for bar in breakdowns}
    assert ("uwsgi", 3000) not in {(bar.label, bar.load) for bar in breakdowns}


def test_the_chart_and_its_table_have_the_same_numbers(sweep: Sweep, files: RunFiles) -> None:
    breakdowns = breakdown.breakdowns(sweep, files.loads)
    drawn = breakdown.drawn(sweep, breakdowns)
    assert drawn is not None and drawn.chosen == "3,000"
    assert [panel.name for panel in drawn.panels] == ["1,000", "2,000", "3,000"]

    chart = breakdown.chart(sweep, breakdowns)
    assert len(chart.data.rows) == sum(len(panel.bars) for panel in drawn.panels)
    assert chart.data.headings == (
        "server",
        "offered/s",
        "requests",
        "failed",
        *breakdown.PARTS,
        "response time",
    )
    assert chart.caption.startswith("Largest component at 3,000/s: first byte (")


def test_an_older_run_without_parts_has_no_chart(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    for path in (run / "load").glob("*.json"):
        load = msgspec.json.decode(path.read_bytes())
        if load["flights"] is not None:
            del load["flights"]["slowest_parts"]
        path.write_bytes(msgspec.json.encode(load))

    stored = read_run(run)
    assert stored.loads and breakdown.breakdowns(read_sweep(stored.summary), stored.loads) == []
