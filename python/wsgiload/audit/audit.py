"""All findings for a set of files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wsgiload.audit.findings import FINDINGS
from wsgiload.audit.findings.averaged_percentiles import averaged_percentiles
from wsgiload.audit.findings.capped_concurrency import capped_concurrency
from wsgiload.audit.findings.flat_throughput import flat_throughput
from wsgiload.audit.findings.idle_servers import idle_servers
from wsgiload.audit.findings.missing_runs import missing_runs
from wsgiload.audit.findings.slower_bare_apps import slower_bare_apps
from wsgiload.audit.findings.zero_averages import zero_averages
from wsgiload.audit.read import NOT_A_RESULT, Stated, Unknown, read_runs, sources
from wsgiload.audit.run import Run
from wsgiload.documents.audit import AuditAlarm, AuditedRun, AuditReport, RejectedFile
from wsgiload.errors import UsageError


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
