"""``wsgiload compare``: what changed between two stored runs."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec
from rich.console import Console

from wsgiload.analysis.aggregate import FIGURES
from wsgiload.analysis.comparison import Change, compare_runs, unlike, unlike_hosts
from wsgiload.cli._output import check_destinations, write_json
from wsgiload.documents.codec import SCHEMA_VERSION, read
from wsgiload.documents.run_info import HostFacts, RunInfo
from wsgiload.documents.summary import Summary
from wsgiload.errors import UsageError
from wsgiload.report import print_comparison, write_change


@click.command()
@click.argument("run_a", type=click.Path(file_okay=False, path_type=Path))
@click.argument("run_b", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--figure",
    type=click.Choice(FIGURES),
    help="Figure to compare.  [default: p99; goodput in a closed loop]",
)
@click.option(
    "--json",
    "json_file",
    is_flag=False,
    flag_value="-",
    metavar="[FILE]",
    help="Write the result as JSON, to standard output by default.",
)
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the result as an HTML page.",
)
def compare(
    run_a: Path, run_b: Path, figure: str | None, json_file: str | None, html: Path | None
) -> None:
    """Compare two stored runs, server by server at each load: RUN_B against RUN_A.

    Two runs share no rounds, so their samples are compared unpaired, and whatever else changed
    between them is part of the difference.
    """
    check_destinations(json_file, html)
    first, second = (read(Summary, run / "summary.json") for run in (run_a, run_b))
    of_sessions = any(run.experiment.sessions for run in (first, second))
    entries = compare_runs(first.cells, second.cells, figure, of_sessions=of_sessions)
    if not entries:
        raise UsageError(
            f"{run_a} and {run_b} share no server at the same load",
            "see `wsgiload report`",
        )

    warnings = [*unlike_hosts(*map(_host_of, (run_a, run_b))), *unlike(first, second)]
    change = Change((str(run_a), str(run_b)), entries, warnings)
    if json_file != "-":
        print_comparison(change.comparisons, change.unlike, Console())
    if json_file is not None:
        write_json({"schema_version": SCHEMA_VERSION} | msgspec.to_builtins(change), json_file)
    if html is not None:
        write_change(html, change)


def _host_of(run: Path) -> HostFacts | None:
    """Where a run was made; None where that was not stored."""
    try:
        return read(RunInfo, run / "run.json").host
    except UsageError:
        return None  # a summary alone can be compared, too
