"""Reads a run directory for the report: the JSON files whole, the two CSV files by cell.

Never writes, and never fails over a file that an interrupted run did not get to: what is missing is
empty.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from wsgiload.analysis.over_cells import analyse
from wsgiload.documents.codec import read
from wsgiload.documents.load_report import LoadReport
from wsgiload.documents.run_info import RunInfo
from wsgiload.documents.summary import Summary
from wsgiload.experiment.procedure import Method
from wsgiload.report.answer import with_answer


class IntervalRow(msgspec.Struct, frozen=True):
    """What the charts need of a line of intervals.csv."""

    start_ns: int
    length_ns: int
    failed: int | None = None
    p50_ns: int | None = None
    p99_ns: int | None = None
    max_ns: int | None = None


class SampleRow(msgspec.Struct, frozen=True):
    """What the charts need of a line of resources.csv."""

    t_ns: int
    cpu_usage_ns: int
    nr_periods: int | None = None
    nr_throttled: int | None = None


Row = TypeVar("Row", IntervalRow, SampleRow)


@dataclass(frozen=True, slots=True)
class RunFiles:
    """Everything the report is made of."""

    directory: Path
    run: RunInfo
    summary: Summary
    intervals: Mapping[str, Sequence[IntervalRow]]
    samples: Mapping[str, Sequence[SampleRow]]
    loads: Mapping[str, LoadReport]


def read_run(directory: Path, method: Method | None = None, slo: Sequence[str] = ()) -> RunFiles:
    """Read one run directory; run.json and summary.json must be there. What cells say together is
    computed anew."""
    summary = with_answer(analyse(read(Summary, directory / "summary.json"), method, slo))
    paths = {cell.id: directory / "load" / f"{cell.id}.json" for cell in summary.cells}
    return RunFiles(
        directory=directory,
        run=read(RunInfo, directory / "run.json"),
        summary=summary,
        intervals=_rows_by_cell(IntervalRow, directory / "intervals.csv"),
        samples=_rows_by_cell(SampleRow, directory / "resources.csv"),
        loads={cell: read(LoadReport, path) for cell, path in paths.items() if path.is_file()},
    )


def _rows_by_cell(kind: type[Row], path: Path) -> dict[str, list[Row]]:
    """The lines of a CSV file; those without a time or without CPU use have nothing to draw."""
    rows: dict[str, list[Row]] = defaultdict(list)
    if not path.is_file():
        return rows

    needed = {field.name for field in msgspec.structs.fields(kind) if field.required}
    with path.open(newline="", encoding="utf-8") as file:
        for line in csv.DictReader(file):
            cell = line.pop("cell")
            known = {name: int(float(text)) for name, text in line.items() if text}
            if needed <= known.keys():
                rows[cell].append(msgspec.convert(known, kind))
    return rows
