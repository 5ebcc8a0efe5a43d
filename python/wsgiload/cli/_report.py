"""``wsgiload report``: build the reports of stored runs again."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.console import Console

from wsgiload.errors import UsageError
from wsgiload.report import print_sweep, write_html


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(file_okay=False, path_type=Path))
def report(runs: tuple[Path, ...]) -> None:
    """Print the tables of stored RUNS and write their report.html again."""
    for run in runs:
        path = run / "summary.json"
        try:
            summary = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(
                f"{path} cannot be read: {error}", "name a run directory, such as .wsgiload/runs/<run>"
            ) from error
        print_sweep(summary, Console())
        click.echo(f"report: {write_html(run)}")
