"""Reads the summary of a run directory: summary.json and, if the run was killed, the cells that
were stored after it.

A report needs only a part of each cell, so that thousands of them fit into memory.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.codec import decode, encode_bytes, read, read_cellwise
from wsgiload.documents.load_report import Distribution, Uncertainty
from wsgiload.documents.summary import Summary
from wsgiload.errors import UsageError
from wsgiload.foreign_files import SUMMARY, RefusedFile, read_lines

# The cells that summary.json lacks, one a line.
NAME = "cells.jsonl"
Keep = Callable[[CellResult], CellResult]
T = TypeVar("T")


def read_summary(run_dir: Path, *, is_lean: bool = False) -> Summary:
    """The summary with all stored cells. ``is_lean``: without what reports do not show. Raises
    UsageError if there is none."""
    path, keep = run_dir / "summary.json", _Lean().cell if is_lean else _unchanged
    summary = read_cellwise(path, keep) if is_lean else read(Summary, path)
    known = {cell.id for cell in summary.cells}
    later = [cell for cell in _later(run_dir / NAME, keep) if cell.id not in known]
    return msgspec.structs.replace(summary, cells=(*summary.cells, *later)) if later else summary


def _later(path: Path, keep: Keep) -> list[CellResult]:
    """The cells up to the first damaged line: a process that was killed leaves a part of one."""
    cells: list[CellResult] = []
    try:
        for line in read_lines(SUMMARY, path):
            cells.append(keep(decode(CellResult, line, str(path))))
    except FileNotFoundError:
        return []
    except RefusedFile:
        raise
    except (UsageError, UnicodeError):
        pass
    return cells


def _unchanged(cell: CellResult) -> CellResult:
    return cell


class _Lean:
    """Leaves out histograms and intervals that no report shows, and keeps equal parts of cells only
    once."""

    def __init__(self) -> None:
        self._seen: dict[bytes, object] = {}

    def cell(self, cell: CellResult) -> CellResult:
        """The lean cell."""
        return msgspec.structs.replace(
            cell,
            response_time_ns=_without_histogram(cell.response_time_ns),
            service_time_ns=_without_histogram(cell.service_time_ns),
            send_lag_ns=_without_histogram(cell.send_lag_ns),
            connect_time_ns=None,
            uncertainty=_of_all_requests(cell.uncertainty),
            settings=self._once(cell.settings),
            limits=self._once(cell.limits),
            not_checked=self._once(cell.not_checked),
            verdict=self._once(cell.verdict),
        )

    def _once(self, part: T) -> T:
        return self._seen.setdefault(encode_bytes(part), part)  # type: ignore[return-value]


def _of_all_requests(uncertainty: Uncertainty | None) -> Uncertainty | None:
    return uncertainty and msgspec.structs.replace(uncertainty, response_time_ns={})


def _without_histogram(times: Distribution | None) -> Distribution | None:
    return None if times is None else msgspec.structs.replace(times, hdr_v2=None, intervals_95={})
