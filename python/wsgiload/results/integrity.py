"""Lists the damaged files of a run directory, one line each, so the rest can still be reported."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator
from pathlib import Path

from wsgiload.documents.capacity import CapacityResult
from wsgiload.documents.codec import histogram_of, read
from wsgiload.documents.load_report import LoadReport
from wsgiload.documents.run_info import RunInfo
from wsgiload.documents.summary import Summary
from wsgiload.errors import UsageError
from wsgiload.foreign_files import TABLE, RefusedFile, checked_input, read_lines, require_plain
from wsgiload.results.manifest import NAME, compared_files
from wsgiload.results.store import CSV_COLUMNS

# Every number with as many digits fits into 64 bits.
_SURE_DIGITS = 18


def damages(folder: Path) -> list[str]:
    """A line for each damaged file, except an unreadable summary.json, which its reader reports.
    A folder with neither a readable summary.json nor a manifest is not a run directory, so nothing
    in it is damaged. Raises RefusedFile for a directory that must not be read at all."""
    require_plain(folder)
    compared = dict(compared_files(folder))
    # A file that is exactly what was written needs no second look.
    known = {name for name, problem in compared.items() if problem is None}
    is_summary_readable = "summary.json" in known or _is_summary_readable(folder)
    if not is_summary_readable and not (folder / NAME).exists():
        return []

    problems = {name: f"{folder / name} {problem}" for name, problem in compared.items() if problem}
    for name, cause in [*_documents(folder, known), *_tables(folder, known)]:
        problems[name] = cause  # more specific than a checksum mismatch
    if not is_summary_readable:
        problems.pop("summary.json", None)
    return [problems[name] for name in sorted(problems)]


def _is_summary_readable(folder: Path) -> bool:
    try:
        read(Summary, folder / "summary.json")
    except RefusedFile:
        raise
    except UsageError:
        return False
    return True


def _documents(folder: Path, known: Collection[str]) -> Iterator[tuple[str, str]]:
    try:
        read(RunInfo, folder / "run.json")
    except RefusedFile:
        raise
    except UsageError as error:
        yield "run.json", error.cause
    if (folder / "capacity.json").exists():
        try:
            read(CapacityResult, folder / "capacity.json")
        except RefusedFile:
            raise
        except UsageError as error:
            yield "capacity.json", error.cause
    for path in sorted((folder / "load").glob("*.json")):
        if f"load/{path.name}" in known:
            continue
        try:
            read_load(path)
        except RefusedFile:
            raise
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


def _tables(folder: Path, known: Collection[str]) -> Iterator[tuple[str, str]]:
    for name, columns in CSV_COLUMNS.items():
        path = folder / name
        if name in known:
            continue
        try:
            problem = _table_problem(path, columns) if path.exists() else None
        except (UnicodeError, csv.Error) as error:
            problem = f"cannot be read: {error}"
        if problem is not None:
            yield name, f"{path} {problem}"


def _table_problem(path: Path, columns: tuple[str, ...]) -> str | None:
    """The problem of the first damaged line, or None. Older runs have fewer columns."""
    with checked_input(TABLE, path):  # fast, before any line is parsed
        pass
    rows = csv.reader(read_lines(TABLE, path))
    heading = next(rows, None)
    if heading is None or heading[:1] != ["cell"] or not set(heading) <= set(columns):
        return "has no header line"
    texts = 1 + (heading[1:2] == ["service"])
    for row in rows:
        if len(row) != len(heading) or not _are_numbers_or_empty(row[texts:]):
            return f"is damaged at line {rows.line_num}; readable lines are used"
    return None


def _are_numbers_or_empty(fields: list[str]) -> bool:
    # Nearly all fields are short and have only digits, and tables are long.
    if "".join(fields).isdecimal() and max(map(len, fields)) <= _SURE_DIGITS:
        return True
    return all(not text or finite(text) is not None for text in fields)


def finite(text: str) -> int | None:
    """The integer value of a field; None if it is not a finite number."""
    try:
        return int(text) if len(text) <= _SURE_DIGITS and text.isdecimal() else int(float(text))
    except (ValueError, OverflowError):
        return None
