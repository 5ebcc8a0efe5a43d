"""Report pages in a real browser.

The tests are in ``frontend/browser``; this module writes the pages that they open.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from tests.unit.capacity_fixture import write_search
from tests.unit.report_fixture import (
    DURATION_S,
    EPOCH_NS,
    make_cell,
    read_summary,
    store_summary,
    write_many,
    write_run,
)
from wsgiload.cli import run as run_command
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.load_report import Bounds, LoadReport
from wsgiload.report import load_page, write_html
from wsgiload.report.run_files import SampleRow

from .browser import assert_pages_pass

HOSTILE = "</script><img src=x onerror=alert(1)>"


def write_hostile(directory: Path) -> Path:
    """A run whose server has a name with HTML markup."""
    summary = read_summary(write_run(directory))
    cells = [
        msgspec.structs.replace(cell, server=HOSTILE, variant=None, notes=(HOSTILE,))
        for cell in summary.cells
        if cell.server == "waitress"
    ]
    store_summary(directory, msgspec.structs.replace(summary, cells=tuple(cells)))
    return directory


def slower(cell: CellResult) -> CellResult:
    """The same cell with response times 1.4 times as long."""
    quantiles = {
        quantile: Bounds(
            low=bounds.low and round(1.4 * bounds.low),
            high=bounds.high and round(1.4 * bounds.high),
        )
        for quantile, bounds in (cell.offered_quantiles_ns or {}).items()
    }
    return msgspec.structs.replace(cell, offered_quantiles_ns=quantiles or None)


def write_slower(directory: Path) -> Path:
    """A run of the same servers with longer response times."""
    summary = read_summary(write_run(directory, runs=6))
    cells = tuple(slower(cell) for cell in summary.cells)
    store_summary(directory, msgspec.structs.replace(summary, cells=cells))
    return directory


def load_with_samples() -> tuple[LoadReport, list[SampleRow]]:
    """A load, and resource samples of its server."""
    load = msgspec.convert(make_cell("waitress", 2000, 1)[1], LoadReport)

    samples = [
        SampleRow(
            t_ns=EPOCH_NS + step * 10**8,
            cpu_usage_ns=step * 4 * 10**7,
            nr_periods=step,
            nr_throttled=step // 3,
            memory_anon_bytes=60 << 20,
            listen_queue=step % 4,
        )
        for step in range(10 * DURATION_S)
    ]
    return load, samples


def write_pages(folder: Path) -> None:
    """The pages that the tests open by name."""
    runs = {
        "single": write_run(folder / "single"),
        "repeated": write_run(folder / "repeated", runs=3),
        "hostile": write_hostile(folder / "hostile"),
        "nine": write_many(folder / "nine", 9),
        "thirty": write_many(folder / "thirty", 30),
        "capacity": write_search(folder / "capacity"),
    }
    for name, directory in runs.items():
        shutil.copy(write_html(directory), folder / f"{name}.html")
    (folder / "load.html").write_text(load_page.render(*load_with_samples()), encoding="utf-8")

    before, after = write_run(folder / "before", runs=6), write_slower(folder / "after")
    change = folder / "change.html"
    assert run_command(["compare", str(before), str(after), "--html", str(change)]) == 0


@pytest.mark.timeout(400)
def test_report_pages_pass_the_browser_tests(tmp_path: Path) -> None:
    write_pages(tmp_path)
    assert_pages_pass("browser", tmp_path)
