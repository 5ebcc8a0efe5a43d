"""``wsgiload audit``: finds misleading results of other load generators."""

from __future__ import annotations

import math
from pathlib import Path

import click

from wsgiload.audit.audit import audit as audit_files
from wsgiload.audit.audit import read_files
from wsgiload.audit.lines import audit_lines, one_line
from wsgiload.audit.read import Stated
from wsgiload.cli._help import HelpfulCommand, WholeNumber, option
from wsgiload.cli._options import RATE, json_option
from wsgiload.cli._output import check_destinations, complain, say, write_json
from wsgiload.errors import EXIT_INVALID, EXIT_OK, EXIT_USAGE, UsageError, require
from wsgiload.report.words import join_names

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
    "vegeta, k6).",
)
@json_option
def audit(
    files: tuple[Path, ...], connections: int | None, rate: float | None, json_file: str | None
) -> int:
    """Find misleading results of other load generators, and explain why they mislead.

    FILES are outputs of wrk, wrk2, ab, httperf, hey, oha (JSON), vegeta, k6 (summary JSON), Locust
    (CSV) or FunkLoad (index.rst), or directories of such files. The exit code is 98 if there are
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
