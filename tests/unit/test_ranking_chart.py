"""The first chart of a page: its axis, groups, marks and notes."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.summary import Summary
from wsgiload.report import first_screen, words
from wsgiload.report.cells import read_sweep
from wsgiload.report.forest import RankingChart, Row, axis_of, ranking_charts

from .report_fixture import read_summary, write_many, write_run

replace = msgspec.structs.replace


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    return read_summary(write_run(tmp_path_factory.mktemp("runs") / "run"))


def chart_of(summary: Summary) -> RankingChart:
    cautions = first_screen.first_screen(summary).cautions
    (chart,) = ranking_charts(summary, read_sweep(summary), cautions)
    return chart


def rows_of(summary: Summary) -> dict[str, Row]:
    return {row.label: row for group in chart_of(summary).groups for row in group}


def only(summary: Summary, *servers: str, **changes: object) -> Summary:
    """The trials of these servers, changed."""
    cells = [replace(cell, **changes) for cell in summary.cells if cell.server in servers]
    return replace(summary, cells=tuple(cells))


def test_points_are_inside_their_intervals_and_in_the_order_of_the_ranking(
    summary: Summary,
) -> None:
    chart = chart_of(summary)
    assert chart.heading == "p99 at 3,000/s"
    ranked = [row for group in chart.groups for row in group if row.is_ranked]
    assert [row.place for row in ranked] == ["1", "2"]
    points = []
    for row in ranked:
        assert row.point is not None and row.ends is not None
        assert 0 <= row.ends[0] < row.point < row.ends[1] <= 100
        points.append(row.point)
    assert points == sorted(points)
    assert all(0 <= left <= 100 for left, _ in chart.ticks)


def test_each_warning_about_one_server_stands_at_its_row(summary: Summary) -> None:
    rows = rows_of(summary)
    (note,) = rows["cheroot"].notes
    assert note.startswith("cheroot at 3,000/s failed and is not ranked")
    overloaded = rows["gunicorn-sync"]
    (note,) = overloaded.notes
    assert note.startswith("sustained 2,000/s (p99 "), "without a warning, what it sustained"
    assert overloaded.point is None and overloaded.figure.startswith("not sustained")
    assert rows["gunicorn-gevent"].notes == []


def test_ties_are_one_group(tmp_path: Path) -> None:
    groups = chart_of(read_summary(write_many(tmp_path / "run", 3))).groups
    assert [[row.place for row in group] for group in groups] == [["1=", "1=", "1="]]


def test_a_disturbed_trial_is_marked(summary: Summary) -> None:
    calm = only(summary, "gunicorn-gevent", "waitress", disturbed_s=0.0)
    assert {row.disturbed for row in rows_of(calm).values()} == {""}
    disturbed = only(summary, "gunicorn-gevent", disturbed_s=2.0)
    assert rows_of(disturbed)["gunicorn-gevent"].disturbed == "disturbed"


def test_without_p99_the_highest_known_quantile_is_drawn(summary: Summary) -> None:
    def without_p99(cell: CellResult) -> CellResult:
        known = dict(cell.offered_quantiles_ns or {})
        high = replace(known["0.99"], high=None)
        return replace(cell, offered_quantiles_ns={**known, "0.99": high, "0.95": high})

    alone = only(summary, "wsgiref")
    cells = tuple(without_p99(cell) for cell in alone.cells if cell.rate == 2000)
    chart = chart_of(replace(alone, cells=cells))
    (row,) = (row for group in chart.groups for row in group)
    assert chart.heading == "p50 at 2,000/s"
    assert not row.is_ranked and row.point is not None


def test_a_closed_loop_is_drawn_by_goodput(tmp_path: Path) -> None:
    closed = read_summary(write_run(tmp_path / "run", closed_loop=True))
    chart = chart_of(closed)
    assert chart.heading.startswith("goodput/s at ")
    assert any(row.point is not None for group in chart.groups for row in group)
    assert all(row.ends is None for group in chart.groups for row in group)


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ((5.15e6, 5.53e6), ["4.5 ms", "5 ms", "5.5 ms", "6 ms", "6.5 ms"]),
        ((1.1e6, 40e6), ["2 ms", "5 ms", "10 ms", "20 ms"]),
        ((80_000.0, 9e9), ["100 µs", "1 ms", "10 ms", "100 ms", "1 s"]),
    ],
)
def test_ticks_are_round_and_few(values: tuple[float, float], ticks: list[str]) -> None:
    axis = axis_of(values)
    assert axis is not None
    assert [text for _, text in axis.ticks(words.format_duration_ns)] == ticks
    assert axis.at(0) == 0 and axis.at(1e99) == 100


def test_there_is_no_axis_without_a_positive_value() -> None:
    assert axis_of([0.0]) is None
