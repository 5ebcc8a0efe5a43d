"""Reads a run directory for the report: the JSON files whole, the two CSV files by cell.

Never writes, and never fails over a file that an interrupted run did not get to: what is missing is
empty.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wsgiload.analysis.over_cells import analyse
from wsgiload.documents.codec import read_plain
from wsgiload.documents.load_report import LoadReport
from wsgiload.documents.run_info import RunInfo
from wsgiload.documents.summary import Summary
from wsgiload.experiment.procedure import Method
from wsgiload.report.words import Json

Row = dict[str, int | None]


@dataclass(frozen=True, slots=True)
class RunFiles:
    """Everything the report is made of."""

    directory: Path
    run: Json
    summary: Json
    intervals: dict[str, list[Row]]
    samples: dict[str, list[Row]]
    loads: dict[str, Json]


def read_run(directory: Path, method: Method | None = None, slo: Sequence[str] = ()) -> RunFiles:
    """Read one run directory; run.json and summary.json must be there. What cells say together is
    computed anew."""
    summary = analyse(read_plain(Summary, directory / "summary.json"), method, slo)
    loads: dict[str, Json] = {}
    for cell in summary["cells"]:
        path = directory / "load" / f"{cell['id']}.json"
        if path.is_file():
            loads[str(cell["id"])] = read_plain(LoadReport, path)
    return RunFiles(
        directory=directory,
        run=read_plain(RunInfo, directory / "run.json"),
        summary=summary,
        intervals=_rows_by_cell(directory / "intervals.csv"),
        samples=_rows_by_cell(directory / "resources.csv"),
        loads=loads,
    )


def _rows_by_cell(path: Path) -> dict[str, list[Row]]:
    rows: dict[str, list[Row]] = defaultdict(list)
    if path.is_file():
        with path.open(newline="", encoding="utf-8") as file:
            for line in csv.DictReader(file):
                cell = line.pop("cell")
                rows[cell].append(
                    {name: int(float(text)) if text else None for name, text in line.items()}
                )
    return dict(rows)
