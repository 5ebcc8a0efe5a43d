"""``wsgiload report``: rebuilds the reports of stored runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import click

from wsgiload.analysis.answered import are_open
from wsgiload.analysis.objective import parse_objective
from wsgiload.analysis.over_cells import analyse
from wsgiload.cli._completion import complete_runs
from wsgiload.cli._declared import FOLDER
from wsgiload.cli._descriptions import described
from wsgiload.cli._help import HelpfulCommand, option
from wsgiload.cli._options import verbose_option
from wsgiload.cli._output import complain, say
from wsgiload.cli._recommend import print_recommendations
from wsgiload.cli._search_result import print_search
from wsgiload.cli._stored_runs import read_summary, reporting_damage
from wsgiload.cli._trend import report_trend
from wsgiload.documents.capacity import CapacityResult
from wsgiload.documents.codec import read
from wsgiload.documents.recommendation import Recommendation
from wsgiload.errors import EXIT_INVALID, EXIT_OK, UsageError
from wsgiload.experiment.procedure import Method
from wsgiload.experiment.public_options import SweepOptions
from wsgiload.report import (
    CAPACITY,
    is_capacity_run,
    print_first_screen,
    print_sweep,
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
