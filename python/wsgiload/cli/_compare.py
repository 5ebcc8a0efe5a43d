"""``wsgiload compare``: what changed between two stored runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from wsgiload.aggregate import FIGURES
from wsgiload.cli._output import check_destinations, write_json
from wsgiload.cli._report import read_summary
from wsgiload.comparison import compare_runs, unlike
from wsgiload.errors import UsageError
from wsgiload.report import print_comparison
from wsgiload.store import SCHEMA_VERSION


@click.command()
@click.argument("run_a", type=click.Path(file_okay=False, path_type=Path))
@click.argument("run_b", type=click.Path(file_okay=False, path_type=Path))
@click.option("--figure", type=click.Choice(FIGURES), help="What to compare.  [default: p99, of a closed loop goodput]")
@click.option(
    "--json",
    "json_file",
    is_flag=False,
    flag_value="-",
    metavar="[FILE]",
    help="Write the result as JSON; - or nothing is standard output.",
)
def compare(run_a: Path, run_b: Path, figure: str | None, json_file: str | None) -> None:
    """Compare two stored runs, server by server at each load: RUN_B against RUN_A.

    Two runs share no rounds, so their samples are compared unpaired, and whatever else changed between them is
    part of the difference.
    """
    check_destinations(json_file)
    first, second = (read_summary(run / "summary.json") for run in (run_a, run_b))
    entries = compare_runs(first["cells"], second["cells"], figure)
    if not entries:
        raise UsageError(f"{run_a} and {run_b} have no server at the same load in common", "see `wsgiload report`")
    remarks = unlike(first, second)
    if json_file != "-":
        print_comparison(entries, remarks, Console())
    if json_file is not None:
        result: dict[str, Any] = {"runs": [str(run_a), str(run_b)], "comparisons": entries, "unlike": remarks}
        write_json({"schema_version": SCHEMA_VERSION} | result, json_file)
