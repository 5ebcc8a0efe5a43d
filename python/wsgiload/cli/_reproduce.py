"""``wsgiload reproduce``: runs a published comparison from an experiment file of wsgiload."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from wsgiload.cli._completion import complete_studies
from wsgiload.cli._help import option
from wsgiload.cli._options import options_by_name
from wsgiload.cli._output import say
from wsgiload.cli._run import (
    ExperimentFile,
    ExperimentFileCommand,
    options_of_sweep,
    read_experiment_file,
    run_file,
)
from wsgiload.errors import UsageError
from wsgiload.host.cpus import available_cpus
from wsgiload.units import parse_cpus

FOLDER = Path(__file__).parents[1] / "_experiments"
FULL, QUICK = "full", "quick"
EXAMPLES = (
    "wsgiload reproduce --list",
    "wsgiload reproduce appdynamics-2016",
    "wsgiload reproduce slides-2013-fair --scale full",
)


class StudyCommand(ExperimentFileCommand):
    """A sweep whose first argument names an experiment file of wsgiload."""

    def read(
        self, word: str, options: Mapping[str, click.Option], scale: str | None
    ) -> ExperimentFile:
        """The file with this name, scaled, and limited to the cores of this machine."""
        path = _path_of(word)
        experiment_file = read_experiment_file(path, options)
        # Messages need not show where wsgiload is installed.
        experiment_file = replace(experiment_file, path=Path(path.name))
        # click refuses any other scale when it parses the option.
        scaled = experiment_file.scaled(None if scale == FULL else QUICK)
        return _limited_to_machine(scaled)


def studies() -> dict[str, Path]:
    """The files by name; the fair version of a file follows it."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.toml"), key=lambda path: path.stem)}


def _path_of(name: str) -> Path:
    known = studies()
    if name in known:
        return known[name]
    close = difflib.get_close_matches(name, known, n=1)
    fix = f"did you mean {close[0]}?" if close else "see `wsgiload reproduce --list`"
    raise UsageError(f"unknown comparison {name!r}", fix)


def _limited_to_machine(experiment_file: ExperimentFile) -> ExperimentFile:
    """The file with fewer server cores if this machine would have none left for the load."""
    cores = parse_cpus(str(experiment_file.options.get("cpus", 1)))
    max_cores = max(1, len(available_cpus()) - 1)
    if cores <= max_cores:
        return experiment_file
    return experiment_file.replacing(
        {"cpus": max_cores}, f"scaled to {len(available_cpus())} cores"
    )


def _list(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    options = options_by_name(ctx.command)
    files = {name: read_experiment_file(path, options) for name, path in studies().items()}
    width = max(map(len, files))
    for name, file in files.items():
        say(f"{name:{width}}  {file.title}")
    ctx.exit()


@click.command(cls=StudyCommand, examples=EXAMPLES)
@click.argument("file", metavar="NAME", shell_complete=complete_studies)
@option(
    "Procedure",
    "--list",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list,
    help="List the published comparisons.",
)
@option(
    "Procedure",
    "--scale",
    type=click.Choice([QUICK, FULL]),
    default=QUICK,
    allow_from_autoenv=False,
    help="Extent of the measurement: full (all original load levels and durations) or quick (a few load levels for a few seconds each).",
)
@click.pass_context
def reproduce(ctx: click.Context, /, file: str, scale: str, **flags: Any) -> int:
    """Repeat the published comparison NAME.

    NAME-fair uses equivalent settings for all servers. The output lists the options that were
    scaled down. Options override the settings of NAME; the defaults below apply only to settings
    that NAME does not set.
    """
    return run_file(ctx, flags)


reproduce.params += options_of_sweep()
