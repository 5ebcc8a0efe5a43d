"""The charts: deterministic SVG in the page's own colours and fonts, without invented values."""

from __future__ import annotations

import re
import sys
from dataclasses import astuple, replace
from pathlib import Path
from subprocess import run
from xml.etree import ElementTree

import msgspec
import pytest

from wsgiload.documents.summary import CellResult
from wsgiload.report import charts, svg
from wsgiload.report.cells import Sweep, conditions, read_sweep
from wsgiload.report.run_files import RunFiles, read_run
from wsgiload.report.strip import Strip, make_strip
from wsgiload.report.strip_chart import strip_chart

from .report_fixture import read_summary, write_run

DRAW = {
    "response-time": charts.response_time_chart,
    "goodput": charts.goodput_chart,
    "resources": charts.resource_chart,
    "spectrum": charts.spectrum_chart,
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> RunFiles:
    return read_run(write_run(tmp_path_factory.mktemp("runs") / "run"))


@pytest.fixture(scope="module")
def sweep(files: RunFiles) -> Sweep:
    return read_sweep(files.summary)


def strip_of(files: RunFiles, cell_id: str) -> Strip | None:
    cell = next(cell for cell in read_sweep(files.summary).cells if cell.id == cell_id)
    return make_strip(cell, files.intervals.get(cell_id, ()), files.samples.get(cell_id, ()))


def texts(drawing: str) -> list[str]:
    return [
        "".join(element.itertext())
        for element in ElementTree.fromstring(drawing).iter()
        if element.tag.endswith("}text")
    ]


@pytest.mark.parametrize("name", sorted(DRAW))
def test_a_chart_is_the_same_twice_and_names_its_conditions(name: str, sweep: Sweep) -> None:
    drawing = DRAW[name](sweep)
    assert drawing == DRAW[name](sweep)
    assert conditions(sweep.experiment) in texts(drawing)
    assert set(sweep.labels) <= set(texts(drawing))


def changed(cell: CellResult, **changes: dict[str, object]) -> CellResult:
    """The same cell with changes inside these parts."""
    parts = {
        name: msgspec.structs.replace(getattr(cell, name), **change)
        for name, change in changes.items()
    }
    return msgspec.structs.replace(cell, **parts)


def without_limits(files: RunFiles) -> Sweep:
    loose: dict[str, object] = {"backend": "none", "not_enforced": ("cpus", "memory", "pids")}
    cells = tuple(changed(cell, limits=loose) for cell in files.summary.cells)
    return read_sweep(msgspec.structs.replace(files.summary, cells=cells))


def test_only_a_limit_that_held_is_drawn(files: RunFiles, sweep: Sweep) -> None:
    loose = without_limits(files)
    assert [texts(charts.resource_chart(one)).count("limit") for one in (sweep, loose)] == [2, 0]
    strips = [
        make_strip(one.cells[0], files.intervals[one.cells[0].id], ()) for one in (sweep, loose)
    ]
    assert [strip.cpu_limit for strip in strips if strip is not None] == [2.0, None]


@pytest.mark.parametrize("name", sorted(DRAW))
def test_a_chart_keeps_its_identifiers_and_fonts_to_itself(name: str, sweep: Sweep) -> None:
    drawing = DRAW[name](sweep)
    identifiers = re.findall(r'\bid="([^"]*)"', drawing)
    assert identifiers and all(identifier.startswith(f"{name}-") for identifier in identifiers)
    assert len(set(identifiers)) == len(identifiers)
    references = re.findall(r'(?:xlink:href="|url\()#([^")]*)', drawing)
    assert set(references) <= set(identifiers)
    assert "font-family" not in drawing and "<style" not in drawing and "<metadata" not in drawing


@pytest.mark.parametrize("name", sorted(DRAW))
def test_every_colour_can_be_changed_by_the_page(name: str, sweep: Sweep) -> None:
    drawing = DRAW[name](sweep)
    assert "currentColor" in drawing and svg.INK not in drawing
    fixed = re.sub(r"var\(--[a-z0-9-]+, #[0-9a-f]{6}\)", "", drawing)
    assert re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", fixed) == []


def test_no_two_servers_look_alike() -> None:
    styles = [
        tuple(str(value) for value in astuple(svg.series_style(index))) for index in range(360)
    ]
    assert len(set(styles)) == 360
    assert len(set(svg.PALETTE)) == len(svg.PALETTE) == len(svg.DARK_PALETTE)


def test_failures_stand_on_the_rail(sweep: Sweep) -> None:
    rail = [
        text for text in texts(charts.response_time_chart(sweep)) if text in ("not met,", "failed")
    ]
    assert rail == ["not met,", "failed"]
    healthy = Sweep(
        sweep.experiment, sweep.of("gunicorn-gevent"), ("gunicorn-gevent",), sweep.loads
    )
    assert "not met," not in texts(charts.response_time_chart(healthy))


def with_cells(files: RunFiles, **changes: dict[str, object]) -> Sweep:
    measured = [cell for cell in files.summary.cells if cell.outcomes is not None]
    cells = tuple(changed(cell, **changes) for cell in measured)
    return read_sweep(msgspec.structs.replace(files.summary, cells=cells))


def test_an_empty_panel_says_why(files: RunFiles, sweep: Sweep) -> None:
    few = with_cells(files, outcomes={"scheduled": 9_999})
    drawn = texts(charts.response_time_chart(few))
    assert "needs 10,000 requests or more" in drawn and "needs 1,000 requests or more" not in drawn

    unknown = {"throttled_period_ratio": None}
    unlimited = with_cells(files, resources=unknown, limits={"read_back": {"cpu_quota_us": -1}})
    assert "no CPU quota was set" in texts(charts.resource_chart(unlimited))
    unread = texts(charts.resource_chart(with_cells(files, resources=unknown)))
    assert "not measured" in unread and "no CPU quota was set" not in unread

    said = {text for draw in DRAW.values() for text in texts(draw(sweep))}
    assert not said & {"not measured", "no CPU quota was set", "needs 10,000 requests or more"}


def test_the_line_of_equality_belongs_to_the_open_loop(sweep: Sweep, tmp_path: Path) -> None:
    assert "achieved = offered" in texts(charts.goodput_chart(sweep))
    closed = read_sweep(read_summary(write_run(tmp_path / "run", closed_loop=True)))
    drawing = charts.goodput_chart(closed)
    assert "achieved = offered" not in texts(drawing)
    assert "connections (closed loop)" in texts(drawing)
    assert "Achieved rate (goodput) against connections" in texts(drawing)


def test_sessions_are_not_compared_with_requests(sweep: Sweep) -> None:
    experiment = msgspec.structs.replace(sweep.experiment, sessions=2)
    of_sessions = replace(sweep, experiment=experiment)
    drawing = texts(charts.goodput_chart(of_sessions))
    assert "achieved = offered" not in drawing
    assert "offered rate, sessions per second" in drawing
    assert conditions(of_sessions.experiment).startswith("Poisson arrivals of sessions")
    assert (sweep.load_heading, of_sessions.load_heading) == ("offered/s", "sessions/s")


def test_the_spectrum_shows_the_lowest_the_middle_and_the_highest_load(sweep: Sweep) -> None:
    assert charts.spectrum_loads(sweep) == (1000, 2000, 3000)
    many = Sweep(sweep.experiment, sweep.cells, sweep.labels, (1, 2, 3, 4, 5))
    assert charts.spectrum_loads(many) == (1, 3, 5)


def test_a_strip_puts_both_sources_on_one_clock(files: RunFiles) -> None:
    strip = strip_of(files, "gunicorn-sync@1000#1")
    assert strip is not None
    assert strip.length_s == 20
    assert strip.middles_s[:2] == (0.5, 1.5)
    assert (strip.busy[0].start_s, strip.busy[-1].end_s) == (0, 20)
    assert strip.cpu_limit == 2
    drawing = strip_chart(strip, files.summary.experiment, "time-0")
    assert "gunicorn-sync at 1,000/s, run 1" in texts(drawing)
    assert any(text.endswith("· run 1 · valid") for text in texts(drawing))


def test_a_cell_without_intervals_has_no_strip(files: RunFiles) -> None:
    assert strip_of(files, "cheroot@3000#1") is None


def test_a_strip_without_samples_says_so(files: RunFiles) -> None:
    cell = next(cell for cell in read_sweep(files.summary).cells if cell.id == "waitress@1000#1")
    strip = make_strip(cell, files.intervals[cell.id], [])
    assert strip is not None
    assert "CPU: not measured in this window" in texts(
        strip_chart(strip, files.summary.experiment, "x")
    )


def test_a_sweep_in_which_everything_failed_still_draws(sweep: Sweep) -> None:
    failed = tuple(cell for cell in sweep.cells if cell.status == "failed")
    alone = Sweep(sweep.experiment, failed, ("cheroot",), (3000,))
    for draw in DRAW.values():
        assert draw(alone).startswith("<svg ")


def test_names_are_not_read_as_formulas(files: RunFiles) -> None:
    cell = msgspec.structs.replace(files.summary.cells[0], server="a$b_c$<d>")
    odd = read_sweep(msgspec.structs.replace(files.summary, cells=(cell,)))
    assert "a$b_c$<d>" in texts(charts.response_time_chart(odd))


def test_the_tables_do_not_load_matplotlib() -> None:
    code = (
        "import sys, wsgiload.report; print('matplotlib' in sys.modules, 'jinja2' in sys.modules)"
    )
    done = run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
