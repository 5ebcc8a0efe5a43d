"""Chart data: runs, medians, bands and limits, with no invented values."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from subprocess import run
from typing import get_args

import msgspec
import pytest

from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.generate import PAGE_SCHEMA, page_schema_text
from wsgiload.documents.page_data import PageChart, PagePanel, PageRun, Unit
from wsgiload.report import page, panels, timelines, words
from wsgiload.report.cells import Cell, Sweep, conditions, median_upper_ns, read_sweep
from wsgiload.report.grids import of_strip
from wsgiload.report.run_files import IntervalRow, RunFiles, SampleRow, read_run
from wsgiload.report.strip import Strip, make_strip

from .report_fixture import read_summary, write_run

ROOT = Path(__file__).parents[2]
# Warnings do not change how a run is drawn.
STATUSES = {"warn": "valid"}
MAKE = {
    "response-time": panels.response_time_chart,
    "goodput": panels.goodput_chart,
    "resources": panels.resource_chart,
    "spectrum": panels.spectrum_chart,
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> RunFiles:
    return read_run(write_run(tmp_path_factory.mktemp("runs") / "run"))


@pytest.fixture(scope="module")
def sweep(files: RunFiles) -> Sweep:
    return read_sweep(files.summary)


def panel(chart: PageChart, name: str) -> PagePanel:
    return next(panel for panel in chart.panels if panel.name == name)


def runs(one: PagePanel) -> list[tuple[int, PageRun]]:
    return [(series.server, run) for series in one.series for run in series.runs]


def strip_of(files: RunFiles, cell_id: str) -> Strip | None:
    cell = next(cell for cell in read_sweep(files.summary).cells if cell.id == cell_id)
    series = files.series({cell_id})
    return make_strip(cell, series.intervals.get(cell_id, ()), series.samples.get(cell_id, ()))


@pytest.mark.parametrize("name", sorted(MAKE))
def test_a_chart_is_deterministic_and_names_its_conditions(name: str, sweep: Sweep) -> None:
    chart = MAKE[name](sweep)
    assert msgspec.json.encode(chart) == msgspec.json.encode(MAKE[name](sweep))
    assert chart.name == name and chart.label.endswith(conditions(sweep.experiment))
    for one in chart.panels:
        assert [series.server for series in one.series] == list(range(len(sweep.labels)))
        for series in one.series:
            assert len(series.medians) == len(series.bands) == len(one.x) == len(one.x_labels)


def test_every_run_is_drawn_at_its_load(sweep: Sweep) -> None:
    p99 = panel(panels.response_time_chart(sweep), "p99")
    drawn = {(sweep.labels[server], p99.x[run.x]): run for server, run in runs(p99)}
    assert set(drawn) == {(cell.label, cell.load) for cell in sweep.cells}

    for cell in sweep.cells:
        run, upper = drawn[cell.label, cell.load], cell.upper_ns(0.99)
        assert upper is not None and run.status == STATUSES.get(cell.status, cell.status)
        assert run.is_endless == math.isinf(upper)
        assert run.value == (None if run.is_endless else upper)

    for series in p99.series:
        label = sweep.labels[series.server]
        medians = [median_upper_ns(sweep.at(label, load), 0.99) for load in sweep.loads]
        assert list(series.medians) == medians


def test_a_band_contains_the_intervals_of_its_runs(tmp_path: Path) -> None:
    repeated = read_sweep(read_summary(write_run(tmp_path / "run", runs=3)))
    p99 = panel(panels.response_time_chart(repeated), "p99")
    bands = 0

    for series in p99.series:
        for index, band in enumerate(series.bands):
            at_this_load = [
                run for run in series.runs if run.x == index and run.status != "invalid"
            ]
            if band is None:
                continue
            bands += 1
            for one in at_this_load:
                assert one.value is not None
                low, high = one.interval or (one.value, one.value)
                assert high is not None and band[0] <= low <= one.value <= high <= band[1]
            median = series.medians[index]
            assert median is not None and band[0] <= median <= band[1]

    assert bands > 10


def changed(cell: CellResult, **changes: dict[str, object]) -> CellResult:
    """A copy of the cell in which fields of these parts are replaced."""
    parts = {
        name: msgspec.structs.replace(getattr(cell, name), **change)
        for name, change in changes.items()
    }
    return msgspec.structs.replace(cell, **parts)


def without_limits(files: RunFiles) -> Sweep:
    unenforced: dict[str, object] = {"backend": "none", "not_enforced": ("cpus", "memory", "pids")}
    cells = tuple(changed(cell, limits=unenforced) for cell in files.summary.cells)
    return read_sweep(msgspec.structs.replace(files.summary, cells=cells))


def test_only_an_enforced_limit_is_drawn(files: RunFiles, sweep: Sweep) -> None:
    unenforced = without_limits(files)
    limits = [
        [line.value for one in panels.resource_chart(which).panels for line in one.lines]
        for which in (sweep, unenforced)
    ]

    assert limits == [[2.0, 512 << 20], []]

    strips = [
        make_strip(one.cells[0], files.series({one.cells[0].id}).intervals[one.cells[0].id], ())
        for one in (sweep, unenforced)
    ]
    assert [strip.cpu_limit for strip in strips if strip is not None] == [2.0, None]


def luminance(colour: str) -> float:
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [
        channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4
        for channel in channels
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(
    ("colours", "background"), [(page.LIGHT, "#ffffff"), (page.DARK, "#16191d")]
)
def test_every_series_colour_contrasts_with_the_page(
    colours: tuple[str, ...], background: str
) -> None:
    assert len(set(colours)) == len(colours) == len(page.LIGHT)
    for colour in colours:
        bright, faint = sorted((luminance(colour), luminance(background)), reverse=True)
        assert (bright + 0.05) / (faint + 0.05) >= 3, colour


def test_the_front_end_has_the_same_number_of_colours() -> None:
    source = (ROOT / "frontend" / "src" / "style.ts").read_text()
    assert f"COLOURS = {len(page.LIGHT)};" in source


def test_failures_are_drawn_on_the_rail(sweep: Sweep) -> None:
    p99 = panel(panels.response_time_chart(sweep), "p99")
    assert any(run.is_endless and run.status == "failed" for _, run in runs(p99))

    overloaded = [run for _, run in runs(p99) if run.is_endless and run.status != "failed"]
    assert overloaded and all(run.low is not None for run in overloaded)

    healthy = Sweep(
        sweep.experiment, sweep.of("gunicorn-gevent"), ("gunicorn-gevent",), sweep.loads
    )
    p99 = panel(panels.response_time_chart(healthy), "p99")

    assert not any(run.is_endless for _, run in runs(p99))


def with_cells(files: RunFiles, **changes: dict[str, object]) -> Sweep:
    measured = [cell for cell in files.summary.cells if cell.outcomes is not None]
    cells = tuple(changed(cell, **changes) for cell in measured)
    return read_sweep(msgspec.structs.replace(files.summary, cells=cells))


def test_only_an_absent_panel_says_why(files: RunFiles, sweep: Sweep) -> None:
    few = panels.response_time_chart(with_cells(files, outcomes={"scheduled": 9_999}))
    assert few.absent == ("p99.9 response time: needs at least 10,000 requests",)
    assert [one.name for one in few.panels] == ["p50", "p90", "p95", "p99"]
    assert few.chosen == "p99"

    unknown: dict[str, object] = {"throttled_period_ratio": None}
    cases: list[tuple[dict[str, object], str]] = [
        ({"server_cpus": "1"}, "no CPU quota (the CPU limit is enforced by pinning to CPU 1)"),
        (
            {"server_cpus": [2, 3]},
            "no CPU quota (the CPU limit is enforced by pinning to CPUs 2,3)",
        ),
        ({"cpus": None}, "no CPU quota (CPU time was not limited)"),
        ({"server_cpus": None}, "not measured"),
        ({"not_enforced": ("cpus",)}, "no CPU quota (the CPU limit was not enforced)"),
    ]
    for limits, reason in cases:
        without = {"read_back": {"cpu_quota_us": -1}, "cpus": 1.0, **limits}
        changed_limits = with_cells(files, resources=unknown, limits=without)
        (absent,) = panels.resource_chart(changed_limits).absent
        assert absent == f"CPU periods throttled: {reason}"
    assert not any(make(sweep).absent for make in MAKE.values())


@pytest.mark.parametrize(
    ("requests", "chosen"), [(1_000, "p99"), (999, "p95"), (110, "p90"), (99, "p50"), (19, None)]
)
def test_the_first_quantile_is_the_highest_that_the_data_support(
    files: RunFiles, requests: int, chosen: str | None
) -> None:
    few = with_cells(files, outcomes={"scheduled": requests})
    chart = panels.response_time_chart(few)
    assert chart.chosen == (chosen or "")
    drawn = {one.name for one in panels.all_charts(few)}
    assert drawn == {"goodput", "resources"} | ({"response-time", "spectrum"} if chosen else set())


def test_a_disturbed_run_is_marked(files: RunFiles) -> None:
    calm = with_cells(files, outcomes={})
    first, *others = [cell.result for cell in calm.cells]
    disturbed = msgspec.structs.replace(first, disturbed_s=2.0)
    cells = (disturbed, *others)
    p99 = panel(
        panels.response_time_chart(read_sweep(msgspec.structs.replace(files.summary, cells=cells))),
        "p99",
    )
    assert [run.status for _, run in runs(p99)].count("disturbed") == 1


def test_only_an_open_loop_has_a_line_of_equality(sweep: Sweep, tmp_path: Path) -> None:
    assert panel(panels.goodput_chart(sweep), "goodput").has_equality
    closed = read_sweep(read_summary(write_run(tmp_path / "run", closed_loop=True)))
    chart = panels.goodput_chart(closed)
    assert not any(one.has_equality for one in chart.panels)
    assert {one.x_title for one in chart.panels} == {"connections (closed loop)"}
    assert chart.label.startswith("Goodput by number of connections. ")


def test_sessions_are_not_compared_with_requests(sweep: Sweep) -> None:
    experiment = msgspec.structs.replace(sweep.experiment, sessions=2)
    session_sweep = replace(sweep, experiment=experiment)
    goodput = panel(panels.goodput_chart(session_sweep), "goodput")
    assert not goodput.has_equality
    assert goodput.x_title == "offered rate, sessions per second"
    assert conditions(session_sweep.experiment).startswith("Poisson session arrivals")
    assert (sweep.load_heading, session_sweep.load_heading) == ("offered/s", "sessions/s")


def test_the_spectrum_has_every_load_and_starts_at_the_highest(sweep: Sweep) -> None:
    chart = panels.spectrum_chart(sweep)
    assert [one.name for one in chart.panels] == ["1,000", "2,000", "3,000"]
    assert (chart.choice, chart.chosen) == ("load", "3,000")
    assert chart.panels[0].x == pytest.approx((2, 10, 20, 100, 1000))
    assert chart.panels[0].x_labels == ("p50", "p90", "p95", "p99", "p99.9")


def test_widely_spaced_loads_have_a_logarithmic_axis(sweep: Sweep) -> None:
    lowest = {sweep.loads[0]: 10}
    cells = tuple(
        Cell(msgspec.structs.replace(cell.result, rate=lowest.get(cell.load, cell.load)))
        for cell in sweep.cells
    )
    apart = replace(sweep, cells=cells, loads=(10.0, *sweep.loads[1:]))
    axes = [panels.goodput_chart(one).panels[0].is_x_log for one in (sweep, apart)]
    assert axes == [False, True]


def test_a_strip_aligns_intervals_and_samples(files: RunFiles) -> None:
    strip = strip_of(files, "gunicorn-sync@1000#1")
    assert strip is not None
    assert strip.length_s == 20
    assert strip.middles_s[:2] == (0.5, 1.5)
    assert (strip.busy[0].start_s, strip.busy[-1].end_s) == (0, 20)
    assert strip.cpu_limit == 2

    line = timelines.timeline(strip, 0, "time-0")
    assert line.label == "gunicorn-sync at 1,000/s, run 1"
    assert line.uses.ends_s[-1] == 20 and line.uses.memory_bytes[0] == 96 << 20
    assert len(line.p99_ns) == len(line.middles_s) == 20


def test_grouped_intervals_keep_their_maxima_and_failures(files: RunFiles) -> None:
    cell = next(cell for cell in read_sweep(files.summary).cells if cell.id == "waitress@1000#1")
    rows = [
        IntervalRow(
            start_ns=place * 10**9,
            length_ns=10**9,
            failed=1,
            p50_ns=10 + place,
            p99_ns=None if place == 3 else 100 + place,
            max_ns=1000 + place,
        )
        for place in range(7)
    ]
    samples = [SampleRow(t_ns=place * 10**8, cpu_usage_ns=place * 10**8) for place in range(70)]
    strip = make_strip(cell, rows, samples, max_points=3)

    assert strip is not None
    assert (strip.grouped, strip.middles_s) == (3, (1.5, 4.5, 6.5))
    assert strip.p50_ns == (11, 14, 16) and strip.p99_ns == (102, 105, 106)
    assert strip.max_ns == (1002, 1005, 1006) and strip.failed == (3, 3, 1)
    assert len(strip.busy) <= 3 and all(busy.cores == pytest.approx(1) for busy in strip.busy)
    assert of_strip(strip).rows[0] == (
        "1.5 s",
        "11 ns",
        "102 ns",
        "1.00 µs",
        "3",
        "1.00",
        "–",
        "–",
        "–",
    )


def test_the_total_number_of_timeline_points_is_bounded() -> None:
    assert timelines.points_of_each(1) == 120
    assert all(timelines.points_of_each(count) * count <= 4_000 for count in range(40, 166))


def test_a_cell_without_intervals_has_no_strip(files: RunFiles) -> None:
    assert strip_of(files, "cheroot@3000#1") is None


def test_a_strip_without_samples_says_so(files: RunFiles) -> None:
    cell = next(cell for cell in read_sweep(files.summary).cells if cell.id == "waitress@1000#1")
    strip = make_strip(cell, files.series({cell.id}).intervals[cell.id], [])
    assert strip is not None
    assert timelines.timeline(strip, 0, "x").uses.ends_s == ()
    assert {row[5:] for row in of_strip(strip).rows} == {("–",) * 4}


def test_a_sweep_in_which_everything_failed_is_still_drawn(sweep: Sweep) -> None:
    failed = tuple(cell for cell in sweep.cells if cell.status == "failed")
    alone = Sweep(sweep.experiment, failed, ("cheroot",), (3000,))
    p99 = panel(panels.response_time_chart(alone), "p99")
    assert [run.is_endless for _, run in runs(p99)] == [True]
    assert [chart.name for chart in panels.all_charts(alone)] == ["response-time"]
    assert "correct responses per second: not measured" in panels.goodput_chart(alone).absent
    assert panels.spectrum_chart(alone).absent == (
        "at 3,000/s: no quantile is known (no valid result)",
    )


def test_the_page_schema_is_up_to_date() -> None:
    assert (ROOT / PAGE_SCHEMA).read_text() == page_schema_text(), "run make schemas"


FORMATS = {
    "ns": words.format_duration_ns,
    "per_s": words.format_measured_per_s,
    "ratio": words.format_ratio,
    "cores": words.format_cores,
    "bytes": words.format_bytes,
    "count": words.format_count,
}


def test_the_front_end_formats_numbers_like_the_tables() -> None:
    """``frontend/test/format.test.ts`` reads the same file."""
    cases = json.loads((ROOT / "tests" / "unit" / "format_cases.json").read_text())
    assert set(cases) == set(FORMATS) == set(get_args(Unit))
    for unit, pairs in cases.items():
        for value, text in pairs:
            assert FORMATS[unit](value) == text


def test_the_tables_do_not_import_a_template_engine() -> None:
    code = "import sys, wsgiload.report; print('jinja2' in sys.modules)"
    process = run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.split() == ["False"]
