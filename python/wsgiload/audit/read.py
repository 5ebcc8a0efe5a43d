"""Finds the files to audit, reads them within bounds, and lists all findings."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import msgspec

from wsgiload.audit.findings import FINDINGS
from wsgiload.audit.findings.comparisons import missing_runs, slower_bare_apps, zero_averages
from wsgiload.audit.findings.levels import capped_concurrency, flat_throughput, idle_servers
from wsgiload.audit.findings.times import averaged_percentiles
from wsgiload.audit.run import AuditTool, Part, Run
from wsgiload.audit.tools import TOOLS
from wsgiload.documents.audit import AuditAlarm, AuditedRun, AuditReport, RejectedFile
from wsgiload.errors import UsageError
from wsgiload.foreign_files import OTHER_RESULT, RefusedFile, read_file

MAX_FILES = 10_000
MAX_PARTS = 10_000
# These tools have no option for a rate.
_ALWAYS_CLOSED = ("wrk", "ab", "locust", "funkload")
_WITHOUT_LOAD = ("docker stats", "summary table")
_HEAD_CHARACTERS = 4_000
NOT_A_RESULT = "not the output of a known load generator"
_KNOWN = ", ".join(tool.name for tool in TOOLS)


# Beginnings of files that are no summary, and how to save one.
_HOW_TO_SAVE = (
    (
        r'\A\s*\{.*"type" ?: ?"(?:Point|Metric)"',
        "samples of k6; add --summary-export FILE to k6 run",
    ),
    (r"\Aresponse-time,DNS", "requests of hey; save its output without -o csv"),
    (r"\A(?:starttime\tseconds|Percentage served,)", "a table of ab; save its output: ab … >FILE"),
    (r'\A\{"attack":|Attack\x01', "requests of vegeta; save: vegeta report -type=json FILE"),
    (
        r"\A(?:Method,Name,Error,|Count,Message,Traceback|Method,Name,\"?Error)|<title>[^<]*Locust",
        "a list or page of Locust; run it with --csv NAME and audit NAME_stats.csv",
    ),
    (
        r"\Abombarding|\A\{\"spec\":",
        "JSON of bombardier; save its output without --print and --format",
    ),
    (r"\A(?:timeStamp,elapsed|<\?xml[^>]*>\s*<testResults)", "JMeter's; its results are not read"),
    (r'"DurationHistogram"', "Fortio's; its results are not read"),
    (r"\A\x1f", "packed; unpack it"),
)


class Unknown(UsageError):
    """A file that no known tool wrote; ``fix`` says how to save what it contains, if known."""


@dataclass(frozen=True, slots=True)
class Stated:
    """Facts that the user states because the files may not contain them."""

    connections: int | None = None
    rate_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class AuditSource:
    """A file to read; ``is_named`` is False if it comes from a folder."""

    path: Path
    is_named: bool


def sources(paths: Sequence[Path]) -> Iterator[AuditSource]:
    """The files, and those in the folders, sorted by name."""
    for path in paths:
        if not path.is_dir():
            yield AuditSource(path, is_named=True)
            continue
        files = list(islice(_files_in(path), MAX_FILES + 1))
        if len(files) > MAX_FILES:
            raise UsageError(f"{path} has more than {MAX_FILES:,} files", "name a smaller folder")
        yield from (AuditSource(one, is_named=False) for one in sorted(files))


def _files_in(folder: Path) -> Iterator[Path]:
    """Regular files only: a pipe would never end, and a link may lead anywhere."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(place, name)
            if not name.startswith(".") and stat.S_ISREG(path.lstat().st_mode):
                yield path


def read_runs(path: Path, stated: Stated) -> list[Run]:
    """The runs in a file. Raises UsageError if it cannot be read, is not a result, or was cut
    off."""
    content = _content(path)
    if not content.strip():
        raise Unknown("empty, so not a result", "repeat the run")
    tool = next((tool for tool in TOOLS if tool.recognises(content)), None)
    if tool is None:
        raise _unknown(content[:_HEAD_CHARACTERS])
    parts = _parts(tool, content)
    return [Run(str(path), tool, _with_stated(part, tool, stated)) for part in parts]


def _unknown(head: str) -> Unknown:
    for pattern, words in _HOW_TO_SAVE:
        if re.search(pattern, head):
            what, _, fix = words.partition("; ")
            return Unknown(f"not a summary: {what}", fix)
    return Unknown(NOT_A_RESULT, f"audit reads {_KNOWN}")


def _parts(tool: AuditTool, content: str) -> Sequence[Part]:
    try:
        parts = tool.parse(content)
    except (ArithmeticError, LookupError, ValueError) as error:
        raise UsageError(
            f"not a readable result of {tool.name} ({type(error).__name__}: {error})",
            "export it again",
        ) from error
    if len(parts) > MAX_PARTS:
        raise UsageError(f"it contains more than {MAX_PARTS:,} results", "split the file")
    return parts


def _content(path: Path) -> str:
    try:
        content = read_file(OTHER_RESULT, path)
    except FileNotFoundError as error:
        raise UsageError(f"cannot be read: {error.strerror}") from error
    except RefusedFile as error:  # whoever shows it names the file
        raise UsageError(error.cause.removeprefix(f"{path} "), error.fix) from error
    return content.decode("utf-8", errors="replace").replace("\r\n", "\n")


def _with_stated(part: Part, tool: AuditTool, stated: Stated) -> Part:
    """The figures, completed by the user's facts; the file takes precedence."""
    if tool.name in _WITHOUT_LOAD:
        return part
    figures = part.figures
    connections = figures.connections or stated.connections
    rate_per_s = figures.requested_per_s
    if rate_per_s is None and tool.name not in _ALWAYS_CLOSED:
        rate_per_s = stated.rate_per_s
    load = "open" if rate_per_s is not None else figures.load
    return replace(
        part,
        figures=msgspec.structs.replace(
            figures, connections=connections, requested_per_s=rate_per_s, load=load
        ),
    )


@dataclass(slots=True)
class Files:
    """The runs that were read, the rejected files, the files of a folder that were skipped, and
    notes on others that are almost results."""

    runs: list[Run] = field(default_factory=list)
    rejected: list[RejectedFile] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_files(paths: Sequence[Path], stated: Stated) -> Files:
    """The runs in the files and folders. An unknown file is rejected if it was named, and skipped
    if it is in a folder."""
    files = Files()
    for source in sources(paths):
        try:
            files.runs += read_runs(source.path, stated)
        except Unknown as error:
            if source.is_named:
                files.rejected.append(RejectedFile(file=str(source.path), reason=str(error)))
            elif error.cause == NOT_A_RESULT:
                files.skipped.append(str(source.path))
            else:
                files.notes.append(f"{source.path}: {error}")
        except UsageError as error:
            files.rejected.append(RejectedFile(file=str(source.path), reason=str(error)))
    return files


def audit(files: Files) -> AuditReport:
    """The findings of each run, in the order of the files."""
    alarms: dict[int, list[AuditAlarm]] = {id(run): _alarms_of(run) for run in files.runs}
    for series in _series(files.runs):
        of_series = (*capped_concurrency(series), *flat_throughput(series))
        for run, one in (*of_series, *missing_runs(series, len(files.runs))):
            alarms[id(run)].append(one)
    for total, parts in _totals(files.runs):
        averaged = averaged_percentiles(total, parts)
        alarms[id(total)] += [averaged] if averaged is not None else []

    for across in (zero_averages, slower_bare_apps, idle_servers):
        for run, one in across(files.runs):
            alarms[id(run)].append(one)

    audited = (_audited(run, alarms[id(run)]) for run in files.runs)
    return AuditReport(schema_version=1, files=tuple(audited), rejected=tuple(files.rejected))


def _alarms_of(run: Run) -> list[AuditAlarm]:
    return [one for finding in FINDINGS if (one := finding(run)) is not None]


def _series(runs: Iterable[Run]) -> Iterable[list[Run]]:
    """Runs that belong together: their file names differ only in numbers, such as levels and
    repetitions."""
    series: dict[str, list[Run]] = {}
    for run in runs:
        series.setdefault(re.sub(r"\d+", "#", run.file), []).append(run)
    return series.values()


def _totals(runs: Iterable[Run]) -> Iterable[tuple[Run, list[Run]]]:
    """The aggregate runs of a file, each with the runs that it aggregates."""
    files: dict[str, list[Run]] = {}
    for run in runs:
        files.setdefault(run.file, []).append(run)
    for inside in files.values():
        for total in (run for run in inside if run.part.is_total):
            yield total, [run for run in inside if not run.part.is_total]


def _audited(run: Run, alarms: Sequence[AuditAlarm]) -> AuditedRun:
    return AuditedRun(
        file=run.file,
        part=run.part.name,
        tool=run.tool.name,
        figures=run.figures,
        alarms=tuple(alarms),
    )
