"""Tables for the terminal and offline HTML pages, from stored results only.

``html`` and jinja2 are imported only to render a page, so that terminal tables stay fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wsgiload.analysis.comparison import Change
from wsgiload.documents.load_report import LoadReport
from wsgiload.documents.summary import Summary
from wsgiload.experiment.procedure import Method
from wsgiload.foreign_files import write_named
from wsgiload.report.answer import with_answer
from wsgiload.report.capacity import print_capacity, print_capacity_screen
from wsgiload.report.catalogue import print_checks, print_server
from wsgiload.report.first_screen import print_first_screen
from wsgiload.report.load_screen import print_load_screen
from wsgiload.report.preflight import preflight_lines, print_calibration
from wsgiload.report.recommendation import recommendation_lines
from wsgiload.report.table import (
    print_comparison,
    print_doctor,
    print_load,
    print_servers,
    print_sweep,
)
from wsgiload.report.terminal import terminal, text_of
from wsgiload.report.trend_screen import print_trend

if TYPE_CHECKING:
    from wsgiload.sampling.sampler import Sample

__all__ = [
    "CAPACITY",
    "is_capacity_run",
    "preflight_lines",
    "print_calibration",
    "print_capacity",
    "print_capacity_screen",
    "print_checks",
    "print_comparison",
    "print_doctor",
    "print_first_screen",
    "print_load",
    "print_load_screen",
    "print_server",
    "print_servers",
    "print_sweep",
    "print_trend",
    "recommendation_lines",
    "render_live",
    "terminal",
    "text_of",
    "with_answer",
    "write_change",
    "write_html",
    "write_load",
]


CAPACITY = "capacity.json"


def is_capacity_run(run_dir: Path) -> bool:
    """Whether the run directory belongs to a capacity search."""
    return (run_dir / CAPACITY).is_file()


def write_change(path: Path, change: Change, summaries: tuple[Summary, Summary]) -> None:
    """Write the page that compares two stored runs."""
    from wsgiload.report import change as page

    write_named(path, page.render(change, summaries).encode())


def render_live(command: str) -> str:
    """The page that shows the progress of this command."""
    from wsgiload.report import page

    return page.render_live(command)


def write_load(path: Path, load: LoadReport, samples: Sequence[Sample] = ()) -> None:
    """Write the page of one load; ``samples`` are those of an attached server."""
    from wsgiload.report import load_page, run_files

    text = load_page.render(load, [run_files.sample_row(one) for one in samples])
    write_named(path, text.encode())


def write_html(
    run_dir: Path,
    method: Method | None = None,
    slo: Sequence[str] = (),
    summary: Summary | None = None,
) -> Path:
    """Write report.html into the run directory and return its path. ``summary``: with its
    conclusions, if it was read before."""
    from wsgiload.report import capacity_page, html, page, run_files

    if is_capacity_run(run_dir):
        text = capacity_page.render(run_dir)
    else:
        text = html.render(run_files.read_run(run_dir, method, slo, summary))
    return page.write(run_dir / "report.html", text)
