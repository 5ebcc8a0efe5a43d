"""``wsgiload report``: build the reports of stored runs again."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from wsgiload.analysis.objective import parse_objective
from wsgiload.analysis.over_cells import analyse
from wsgiload.cli._recommend import slo_option, tell_recommendations
from wsgiload.documents.codec import read
from wsgiload.documents.summary import Summary
from wsgiload.errors import EXIT_OK
from wsgiload.experiment.procedure import Method
from wsgiload.report import print_sweep, write_html


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--aggregate",
    type=click.Choice(["interval", "trim"]),
    help="How runs become one figure.  [default: as it was measured]",
)
@slo_option
def report(runs: tuple[Path, ...], aggregate: Method | None, slo: tuple[str, ...]) -> int:
    """Print the tables of stored RUNS and rebuild their report.html."""
    texts, code = parse_objective(slo).texts if slo else [], EXIT_OK
    for run in runs:
        summary = analyse(read(Summary, run / "summary.json"), aggregate, texts)
        print_sweep(summary, Console())
        click.echo(f"report: {write_html(run, aggregate, texts)}")
        code = tell_recommendations(summary.recommendations or (), code)
    return code
