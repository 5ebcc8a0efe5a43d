"""Lists the damaged files of a run directory, one line each, so the rest can still be reported."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from wsgiload.documents.capacity import CapacityResult
from wsgiload.documents.codec import read
from wsgiload.documents.histograms import histogram_of
from wsgiload.documents.load_report import LoadReport
from wsgiload.documents.run_info import RunInfo
from wsgiload.documents.summary import Summary
from wsgiload.errors import UsageError
from wsgiload.results.manifest import NAME, changed_files
from wsgiload.results.store import CSV_COLUMNS

_TEXTS = ("cell", "service")


def damages(folder: Path) -> list[str]:
    """A line for each damaged file, except an unreadable summary.json, which its reader reports.
    A folder with neither a readable summary.json nor a manifest is not a run directory, so nothing
    in it is damaged."""
    is_summary_readable = _is_summary_readable(folder)
    if not is_summary_readable and not (folder / NAME).exists():
        return []

    problems = {name: f"{folder / name} {problem}" for name, problem in changed_files(folder)}
    for name, cause in [*_documents(folder), *_tables(folder)]:
        problems[name] = cause  # more specific than a checksum mismatch
    if not is_summary_readable:
        problems.pop("summary.json", None)
    return [problems[name] for name in sorted(problems)]


def _is_summary_readable(folder: Path) -> bool:
    try:
        read(Summary, folder / "summary.json")
    except UsageError:
        return False
    return True


def _documents(folder: Path) -> Iterator[tuple[str, str]]:
    try:
        read(RunInfo, folder / "run.json")
    except UsageError as error:
        yield "run.json", error.cause
    if (folder / "capacity.json").is_file():
        try:
            read(CapacityResult, folder / "capacity.json")
        except UsageError as error:
            yield "capacity.json", error.cause
    for path in sorted((folder / "load").glob("*.json")):
        try:
            read_load(path)
        except UsageError as error:
            yield f"load/{path.name}", error.cause


def read_load(path: Path) -> LoadReport:
    """A load report whose histogram can be read. Raises UsageError, which names the file."""
    load = read(LoadReport, path)
    try:
        histogram_of(load.response_time_ns)
    except ValueError as error:
        raise UsageError(f"{path} has a damaged histogram: {error}") from error
    return load


def _tables(folder: Path) -> Iterator[tuple[str, str]]:
    for name, columns in CSV_COLUMNS.items():
        path = folder / name
        try:
            problem = _table_problem(path, columns) if path.exists() else None
        except (OSError, UnicodeError, csv.Error) as error:
            problem = f"cannot be read: {error}"
        if problem is not None:
            yield name, f"{path} {problem}"


def _table_problem(path: Path, columns: tuple[str, ...]) -> str | None:
    """The problem of the first damaged line, or None. Older runs have fewer columns."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = csv.reader(file)
        heading = next(rows, None)
        if heading is None or heading[:1] != ["cell"] or not set(heading) <= set(columns):
            return "has no header line"
        for row in rows:
            if len(row) != len(heading) or not all(
                map(_is_number_or_empty, _numbers(heading, row))
            ):
                return f"is damaged at line {rows.line_num}; readable lines are used"
    return None


def _numbers(heading: Sequence[str], row: Sequence[str]) -> list[str]:
    return [text for name, text in zip(heading, row, strict=True) if name not in _TEXTS]


def _is_number_or_empty(text: str) -> bool:
    return not text or finite(text) is not None


def finite(text: str) -> int | None:
    """The integer value of a field; None if it is not a finite number."""
    try:
        return int(float(text))
    except (ValueError, OverflowError):
        return None
