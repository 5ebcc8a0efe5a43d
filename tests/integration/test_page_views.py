"""The first views of reports in a real browser, from a phone to a desktop, light and dark.

The tests are in ``frontend/browser/views.test.ts``; this module writes the pages that they open.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.unit.capacity_fixture import write_search
from tests.unit.report_fixture import read_summary, store_summary, write_many, write_run
from wsgiload.documents.cell_result import CellResult
from wsgiload.report import write_html

from .browser import assert_pages_pass

CONFIGURATIONS = 48


def slowed(cell: CellResult) -> CellResult | None:
    """Two servers with too few requests for p95, one of them disturbed."""
    if cell.server not in ("waitress", "gunicorn-gevent") or cell.outcomes is None:
        return None
    outcomes = msgspec.structs.replace(cell.outcomes, scheduled=110, ok=110, http_status=0)
    disturbed_s = 5.0 if cell.server == "waitress" else 0.0
    return msgspec.structs.replace(cell, outcomes=outcomes, disturbed_s=disturbed_s)


def write_some(directory: Path, change: Callable[[CellResult], CellResult | None]) -> Path:
    """A run with the cells that ``change`` returns."""
    summary = read_summary(write_run(directory))
    cells = tuple(changed for cell in summary.cells if (changed := change(cell)) is not None)
    store_summary(directory, msgspec.structs.replace(summary, cells=cells))
    return directory


@pytest.mark.timeout(400)
def test_the_first_view_of_each_kind_of_report_passes_the_browser_tests(tmp_path: Path) -> None:
    runs = {
        "slow": write_some(tmp_path / "slow", slowed),
        "failed": write_some(tmp_path / "failed", lambda cell: cell if cell.failure else None),
        "one": write_some(tmp_path / "one", lambda cell: cell if cell.server == "uwsgi" else None),
        "many": write_many(tmp_path / "many", CONFIGURATIONS, runs=1),
        "capacity": write_search(tmp_path / "capacity"),
    }
    for name, directory in runs.items():
        shutil.copy(write_html(directory), tmp_path / f"{name}.html")

    assert_pages_pass("browser-views", tmp_path)
