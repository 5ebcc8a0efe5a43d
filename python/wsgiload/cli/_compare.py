"""``wsgiload compare``: compares two stored runs."""

from __future__ import annotations

from pathlib import Path

import click

from wsgiload.analysis.aggregate import FIGURES
from wsgiload.analysis.comparison import Change, compare_summaries, unlike, unlike_hosts
from wsgiload.cli._completion import complete_runs
from wsgiload.cli._declared import FILE, FOLDER
from wsgiload.cli._help import HelpfulCommand, option
from wsgiload.cli._options import json_option
from wsgiload.cli._output import check_destinations, write_json
from wsgiload.cli._stored_runs import host_of, learned_for, read_summary, reporting_damage
from wsgiload.documents.codec import SCHEMA_VERSION
from wsgiload.documents.summary import Summary
from wsgiload.errors import UsageError
from wsgiload.experiment.plan import plain
from wsgiload.foreign_files import require_plain
from wsgiload.program import command_line
from wsgiload.report import print_comparison, terminal, write_change

EXAMPLES = (
    "wsgiload compare .wsgiload/runs/BEFORE .wsgiload/runs/AFTER",
    "wsgiload compare .wsgiload/runs/BEFORE .wsgiload/runs/AFTER --figure p50",
    "wsgiload compare .wsgiload/runs/BEFORE .wsgiload/runs/AFTER --html change.html",
)


@click.command(cls=HelpfulCommand, examples=EXAMPLES)
@click.argument("run_a", type=FOLDER, shell_complete=complete_runs)
@click.argument("run_b", type=FOLDER, shell_complete=complete_runs)
@option(
    "Procedure",
    "--figure",
    type=click.Choice(FIGURES),
    help="Metric to compare.  [default: p99; goodput in a closed loop]",
)
@json_option
@option("Output", "--html", type=FILE, help="Write the result as an HTML page to this file.")
def compare(
    run_a: Path, run_b: Path, figure: str | None, json_file: str | None, html: Path | None
) -> None:
    """Compare the stored runs RUN_A and RUN_B for each server at each load level.

    The runs are compared as independent samples of two sessions. How much unchanged servers differ
    between sessions is learned from sweeps in the same folder that repeat one another, and else
    assumed. A difference includes the effect of everything that changed between the runs.
    """
    check_destinations(json_file, html)
    for run in (run_a, run_b):
        require_plain(run)
    with reporting_damage(run_a, run_b):
        summaries = (read_summary(run_a), read_summary(run_b))
        change = _change((run_a, run_b), summaries, figure)
    if json_file != "-":
        print_comparison(change.comparisons, change.unlike, terminal())
    if json_file is not None:
        write_json({"schema_version": SCHEMA_VERSION} | plain(change), json_file)
    if html is not None:
        write_change(html, change, summaries)


def _change(
    runs: tuple[Path, Path], summaries: tuple[Summary, Summary], figure: str | None
) -> Change:
    run_a, run_b = runs
    first, second = summaries
    comparisons = compare_summaries(first, second, figure, learned=learned_for(run_a, run_b))
    if not comparisons:
        raise UsageError(
            f"{run_a} and {run_b} have no server and load level in common",
            f"`{command_line('report', run_a, run_b)}` shows their servers and load levels",
        )
    differences = [*unlike_hosts(host_of(run_a), host_of(run_b)), *unlike(first, second)]
    return Change((str(run_a), str(run_b)), comparisons, differences)
