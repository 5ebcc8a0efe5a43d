"""``wsgiload audit``: finds misleading results of other load generators."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import click

from wsgiload.audit.read import Stated, read_files
from wsgiload.audit.read import audit as audit_files
from wsgiload.cli._help import HelpfulCommand, WholeNumber, option
from wsgiload.cli._options import RATE, json_option
from wsgiload.cli._output import check_destinations, complain, say, write_json
from wsgiload.documents.audit import AuditedRun, AuditReport, Figures
from wsgiload.errors import EXIT_INVALID, EXIT_OK, EXIT_USAGE, UsageError, require
from wsgiload.report.words import (
    format_bytes,
    format_duration_ns,
    format_per_s,
    join_names,
    plural,
    quantile_name,
)

# The usually quoted quantiles.
_SHOWN_QUANTILES = ("0.5", "0.99")


def audit_lines(report: AuditReport) -> Iterator[str]:
    """Each run with its findings, then the number of findings."""
    for run in report.files:
        yield f"{_title(run)}: {_figures(run.figures)}"
        for one in run.alarms:
            yield f"  {one.alarm}: {one.message}"
            yield f"    {one.arithmetic}"
            yield f"    fix: {one.fix}"
    if report.files:
        yield ""
        yield _count(report)


def _title(run: AuditedRun) -> str:
    parts = [part for part in (run.tool, run.part) if part is not None]
    name = one_line(run.file)
    return f"{name} ({', '.join(parts)})" if parts else name


def one_line(name: str) -> str:
    """A file name on one line, even if it contains a line break."""
    return name.replace("\n", "\\n")


def _figures(figures: Figures) -> str:
    """The figures that the file contains."""
    known = []
    if figures.connections is not None:
        known.append(plural(figures.connections, "connection"))
    if figures.duration_ns is not None:
        known.append(format_duration_ns(figures.duration_ns))
    if figures.requests is not None:
        known.append(plural(figures.requests, "response"))
    if figures.achieved_per_s is not None:
        known.append(format_per_s(figures.achieved_per_s))
    if figures.mean_cpu_cores is not None and figures.max_cpu_cores is not None:
        known.append(
            f"{figures.mean_cpu_cores:.2f} cores (at most {figures.max_cpu_cores:.2f}), at most "
            f"{format_bytes(figures.max_memory_bytes)}"
        )
    known += [
        f"{quantile_name(float(key))} {format_duration_ns(figures.quantiles_ns[key])}"
        for key in _SHOWN_QUANTILES
        if key in figures.quantiles_ns
    ]
    return ", ".join(known) or "no result"


def _count(report: AuditReport) -> str:
    findings = sum(len(run.alarms) for run in report.files)
    whole = plural(len(report.files), "result")
    if not findings:
        return f"no findings in {whole}"
    affected = sum(bool(run.alarms) for run in report.files)
    return (
        f"{plural(findings, 'finding')} in {affected:,} of {whole}; "
        "`wsgiload explain NAME` describes each"
    )


EXAMPLES = (
    "wsgiload audit results/",
    "wsgiload audit wrk-100.txt ab.txt --json audit.json",
    "wsgiload audit hey.txt -c 50",
)


@click.command(cls=HelpfulCommand, examples=EXAMPLES)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@option(
    "Load",
    "-c",
    "--connections",
    type=WholeNumber(min=1),
    help="Number of connections, for files that do not contain it (hey, oha).",
)
@option(
    "Load",
    "-R",
    "--rate",
    type=RATE,
    help="Requested rate in requests per second, for files that do not contain it (wrk2, hey, oha, "
    "bombardier, vegeta, k6).",
)
@json_option
def audit(
    files: tuple[Path, ...], connections: int | None, rate: float | None, json_file: str | None
) -> int:
    """Find misleading results of other load generators, and explain why they mislead.

    FILES are outputs of wrk, wrk2, ab, httperf, hey, oha, bombardier, vegeta, k6, Locust or docker
    stats, FunkLoad's index.rst, summary tables (CSV), or directories of such files. The exit code is 98 if there are
    findings.
    """
    check_destinations(json_file)
    if rate is not None:
        require(0 < rate < math.inf, f"the rate must be above 0, not {rate:g}", "write -R 500")
    read = read_files(files, Stated(connections, rate))
    report = audit_files(read)
    if read.skipped:
        complain(
            f"skipped, not the output of a known load generator: {join_names([one_line(one) for one in read.skipped])}"
        )
    for note in read.notes:
        complain(one_line(note))
    for one in report.rejected:
        complain(f"{one_line(one.file)}: {one.reason}")
    if not report.files and not report.rejected:
        raise UsageError(f"no results in {join_names([str(one) for one in files])}")

    if json_file != "-":
        for line in audit_lines(report):
            say(line)
    if json_file is not None:
        write_json(report, json_file)
    if report.rejected:
        return EXIT_USAGE
    return EXIT_INVALID if any(run.alarms for run in report.files) else EXIT_OK
