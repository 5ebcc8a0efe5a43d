"""``wsgiload report``: rebuilds the reports of stored runs; ``--trend`` shows changes over
several."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import click

from wsgiload.analysis.answered import are_open
from wsgiload.analysis.objective import parse_objective
from wsgiload.analysis.over_cells import analyse
from wsgiload.analysis.run_trend import MIN_STORED_RUNS, StoredRun, trend_of
from wsgiload.cli._completion import complete_runs
from wsgiload.cli._decide import print_recommendations
from wsgiload.cli._declared import FOLDER, described
from wsgiload.cli._help import HelpfulCommand, option
from wsgiload.cli._options import verbose_option
from wsgiload.cli._output import complain, say
from wsgiload.cli._stored_runs import print_search, read_session, read_summary, reporting_damage
from wsgiload.documents.answer import Recommendation
from wsgiload.documents.capacity import CapacityResult
from wsgiload.documents.codec import read
from wsgiload.documents.run_info import RunInfo
from wsgiload.errors import EXIT_INVALID, EXIT_OK, UsageError
from wsgiload.experiment.procedure import Method
from wsgiload.experiment.public_options import SweepOptions
from wsgiload.foreign_files import require_plain
from wsgiload.program import command_line
from wsgiload.report import (
    CAPACITY,
    is_capacity_run,
    print_first_screen,
    print_sweep,
    print_trend,
    terminal,
    with_answer,
    write_html,
)
from wsgiload.results.integrity import damages

EXAMPLES = (
    "wsgiload report .wsgiload/runs/20261125T101500Z-hello-1a2b",
    "wsgiload report .wsgiload/runs/* --trend",
    "wsgiload report .wsgiload/runs/20261125T101500Z-hello-1a2b --slo 'p99<50ms'",
)


@click.command(cls=HelpfulCommand, examples=EXAMPLES)
@click.argument("runs", nargs=-1, required=True, type=FOLDER, shell_complete=complete_runs)
@option(
    "Procedure",
    "--aggregate",
    type=click.Choice(get_args(Method)),
    help=f"{described(SweepOptions, 'aggregate')}  [default: as stored]",
)
@option(
    "Procedure",
    "--slo",
    multiple=True,
    help="Objective, such as 'p99<50ms' (repeatable). The report recommends the configuration that meets it at the highest rate; ties go to the lowest memory use.",
)
@option(
    "Output",
    "--trend",
    is_flag=True,
    help="Compare each server over two or more sweeps, ordered by start time.",
)
@verbose_option
def report(
    runs: tuple[Path, ...],
    aggregate: Method | None,
    slo: tuple[str, ...],
    trend: bool,
    verbose: bool,
) -> int:
    """Print the results of stored RUNS and rebuild their report.html."""
    if trend:
        for flag in (["--aggregate"] if aggregate else []) + (["--slo"] if slo else []):
            complain(f"{flag} has no effect with --trend")
        return report_trend(runs, verbose=verbose)

    texts = parse_objective(slo).texts if slo else []
    code, unreadable = EXIT_OK, EXIT_OK
    for run in runs:
        try:
            for damage in damages(run):
                complain(damage)
            with reporting_damage(run):
                recommendations = _report_one(run, aggregate, texts, verbose)
        except UsageError as error:
            complain(str(error))
            unreadable = error.exit_code
            continue
        code = print_recommendations(recommendations, code, is_printed=not verbose)
        if texts and are_open(recommendations):
            code = EXIT_INVALID
    return unreadable or code


def _report_one(
    run: Path, aggregate: Method | None, texts: Sequence[str], verbose: bool
) -> Sequence[Recommendation]:
    """Print one run, write its page, and return its recommendations."""
    if is_capacity_run(run):
        return _report_capacity(run, verbose)
    summary = with_answer(analyse(read_summary(run), aggregate, texts))
    if verbose:
        print_sweep(summary, terminal())
    else:
        print_first_screen(summary, terminal())
    say(f"report: {write_html(run, aggregate, texts, summary)}")
    return summary.recommendations or ()


def _report_capacity(run: Path, verbose: bool) -> Sequence[Recommendation]:
    """Print a capacity search and write its page. Its result does not depend on --aggregate."""
    document = read(CapacityResult, run / CAPACITY)
    print_search(document, run, verbose=verbose)
    say(f"report: {write_html(run)}")
    return document.recommendations


# The default name of a run directory begins with its start time.
_STAMPED = re.compile(r"\d{8}T\d{6}Z-")


def report_trend(folders: Sequence[Path], *, verbose: bool) -> int:
    """Print the trend over these run directories; unusable ones are reported and skipped."""
    runs: dict[Path, StoredRun] = {}
    code = EXIT_OK
    for folder in {folder.resolve(): folder for folder in folders}.values():
        try:
            runs[folder] = _read(folder)
        except UsageError as error:
            complain(str(error))
            code = error.exit_code
    if len(runs) < MIN_STORED_RUNS:
        raise UsageError(
            f"--trend needs at least {MIN_STORED_RUNS} stored sweeps, not {len(runs)}",
            "name more run directories, such as .wsgiload/runs/*",
        )

    with reporting_damage(*runs):
        names = _names(runs)
        trend = trend_of([replace(run, name=names[folder]) for folder, run in runs.items()])
        if not trend.cells:
            raise UsageError(
                "these runs have no server and load level in common",
                "`wsgiload report RUN` shows the servers and load levels of a run",
            )
        print_trend(trend, terminal(), verbose=verbose)
    return code


def _read(folder: Path) -> StoredRun:
    """Read the sweep in this directory. Raises UsageError if it is unusable."""
    require_plain(folder)
    if is_capacity_run(folder):
        raise UsageError(
            f"{folder} is a capacity search, but --trend needs sweeps",
            f"`{command_line('report', folder)}` shows its result",
        )
    summary = read_summary(folder)
    for damage in damages(folder):
        complain(damage)

    info = read(RunInfo, folder / "run.json")
    try:
        started = datetime.fromisoformat(info.started_utc)
    except ValueError:
        cause = f"{folder / 'run.json'}: {info.started_utc!r} is not a start time"
        raise UsageError(cause, "restore it, or omit this run") from None
    run = StoredRun(
        folder.name,
        started.replace(tzinfo=started.tzinfo or UTC),
        summary,
        info.host,
        read_session(folder, summary),
    )
    with reporting_damage(folder):
        trend_of([run])  # so that the message names only this run
    return run


def _names(runs: Mapping[Path, StoredRun]) -> Mapping[Path, str]:
    """The start time of a run with a default name, otherwise the name of its directory; or whole
    paths, if these names do not differ."""
    folders = {folder: folder.name for folder in runs}
    short = {
        folder: f"{run.started.astimezone(UTC):%Y-%m-%d %H:%M}"
        if _STAMPED.match(folder.name)
        else folder.name
        for folder, run in runs.items()
    }
    for names in (short, folders):
        if len(set(names.values())) == len(runs):
            return names
    return {folder: str(folder) for folder in runs}
