"""Prints the result of a capacity search: the summary or, with ``--verbose``, the tables."""

from __future__ import annotations

from pathlib import Path

from wsgiload.documents.capacity import CapacityResult
from wsgiload.documents.codec import read
from wsgiload.documents.summary import Summary
from wsgiload.errors import UsageError
from wsgiload.report import print_capacity, print_capacity_screen, terminal


def print_search(document: CapacityResult, run_dir: Path, *, verbose: bool) -> None:
    """Print the result, with limits and settings from the run directory."""
    if verbose:
        print_capacity(document, terminal())
    else:
        print_capacity_screen(document, _summary(run_dir), terminal())


def _summary(run_dir: Path) -> Summary | None:
    """The summary with the cells of the search; None for a URL, which has no summary."""
    try:
        return read(Summary, run_dir / "summary.json")
    except UsageError:
        return None
