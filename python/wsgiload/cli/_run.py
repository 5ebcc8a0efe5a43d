"""``wsgiload run``: runs an experiment file with options of ``wsgiload sweep``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date, time
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from wsgiload.cli._experiment_file import APP, ExperimentFile, read_experiment_file
from wsgiload.cli._grid import GridCommand
from wsgiload.cli._help import option
from wsgiload.cli._options import NAMES, as_click_takes, options_by_name
from wsgiload.cli._output import complain
from wsgiload.cli._sweep import DESCRIPTION, sweep
from wsgiload.cli.config import Configuration, TomlValue, require_own_settings
from wsgiload.errors import UsageError

EXAMPLES = (
    "wsgiload run experiment.toml",
    "wsgiload run experiment.toml --dry-run",
    "wsgiload run experiment.toml --servers waitress --duration 5s",
)

# Options of a sweep that are not part of an experiment.
_EXCLUDED = ("config", "resume", "dry_run", "ambiguous_t", "ambiguous_d")
_FLAG = re.compile(r"--([a-z][a-z-]*)")
_FILE = "wsgiload.experiment_file"


class ExperimentFileCommand(GridCommand):
    """A sweep whose first argument names an experiment file, which replaces wsgiload.toml."""

    def configuration_of(self, ctx: click.Context, args: list[str]) -> Configuration:
        """Read the file. Raises UsageError if a value is invalid for its option."""
        given = self.make_parser(ctx).parse_args(list(args))[0]
        if not isinstance(given.get("file"), str):
            return Configuration({}, [], [])
        of_sweep = [one for one in options_of_sweep() if one.name not in _EXCLUDED]
        own = {name: one for name, one in options_by_name(self).items() if one in of_sweep}
        scale = given.get("scale")
        experiment_file = self.read(given["file"], own, scale if isinstance(scale, str) else None)
        servers = given.get("servers")
        if isinstance(servers, str):
            experiment_file = experiment_file.for_servers(NAMES.parse(servers))
        for key, value in experiment_file.options.items():
            _require_usable(ctx, own[key], value, f"{experiment_file.path}: {key}")
        ctx.meta[_FILE] = experiment_file
        ctx.meta[DESCRIPTION] = experiment_file.describe
        return experiment_file.configuration

    def read(
        self, word: str, options: Mapping[str, click.Option], scale: str | None
    ) -> ExperimentFile:
        """Read the file that the argument names."""
        require_own_settings(Path(word))
        return read_experiment_file(Path(word), options).scaled(scale)


def _require_usable(ctx: click.Context, option: click.Option, value: TomlValue, where: str) -> None:
    items = value if isinstance(value, list) else [value]
    if any(isinstance(item, Mapping | list | date | time) for item in items):
        raise UsageError(
            f"{where}: the value has the wrong type", "write it as on the command line"
        )
    try:
        option.type_cast_value(ctx, as_click_takes(value, option))
    except click.BadParameter as error:
        raise UsageError(f"{where}: {error.message.rstrip('.')}") from None


def options_of_sweep() -> list[click.Parameter]:
    """The options of ``wsgiload sweep``, except those that name a source of options."""
    return [param for param in sweep.params if param.name not in ("app", "config", "resume")]


def run_file(ctx: click.Context, flags: Mapping[str, Any]) -> int:
    """Run the experiment file of this command."""
    experiment_file: ExperimentFile = ctx.meta[_FILE]
    for change in () if flags["quiet"] else experiment_file.changes:
        complain(change)
    assert sweep.callback is not None
    with _naming(experiment_file, ctx):
        code: int = sweep.callback(app=experiment_file.app, resume=None, **flags)
        return code


@contextmanager
def _naming(experiment_file: ExperimentFile, ctx: click.Context) -> Iterator[None]:
    """Prefix errors with the file and the key, unless the command line caused them."""
    try:
        yield
    except UsageError as error:
        keys: dict[str, TomlValue] = (
            {} if experiment_file.app is None else {APP: experiment_file.app}
        )
        keys |= {
            key: value for key, value in experiment_file.options.items() if _is_from_file(ctx, key)
        }
        mentioned = [flag.replace("-", "_") for flag in _FLAG.findall(str(error))]
        if any(key in ctx.params and key not in keys for key in mentioned[:1]):
            raise
        key = _key_of(error.cause, mentioned, keys)
        if key is None and any(_is_quoted(value, error.cause) for value in _given(ctx)):
            raise
        where = f"{experiment_file.path}: {key}" if key is not None else str(experiment_file.path)
        raise type(error)(f"{where}: {error.cause}", error.fix) from error


def _given(ctx: click.Context) -> Iterator[Any]:
    """The values on the command line."""
    for name, value in ctx.params.items():
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            yield value


def _is_from_file(ctx: click.Context, key: str) -> bool:
    param = options_by_name(ctx.command)[key]
    return ctx.get_parameter_source(param.name or "") is ParameterSource.DEFAULT_MAP


def _key_of(cause: str, mentioned: list[str], keys: Mapping[str, TomlValue]) -> str | None:
    """The key that a message refers to: by its flag, by its quoted value, or by its name."""
    named = [key for key in mentioned if key in keys]
    quoted = [key for key, value in keys.items() if _is_quoted(value, cause)]
    called = [key for key in keys if re.search(_as_word(key), cause)]
    return next(iter([*named, *quoted, *called]), None)


def _as_word(key: str) -> str:
    """A pattern for a key as words, in the singular or plural, but not as a part of a path."""
    return rf"(?<![\w/.-]){re.escape(key.rstrip('s').replace('_', ' '))}s?(?![\w/.-])"


def _is_quoted(value: Any, cause: str) -> bool:
    items = value if isinstance(value, list | tuple) else [value]
    return any(repr(item) in cause for item in items if isinstance(item, str))


scale_option = option(
    "Procedure",
    "--scale",
    metavar="NAME",
    allow_from_autoenv=False,
    help="Override options with the file's table [scale.NAME], for example --scale quick.",
)


@click.command(cls=ExperimentFileCommand, examples=EXAMPLES)
@click.argument("file", type=click.Path(dir_okay=False))
@scale_option
@click.pass_context
def run(ctx: click.Context, /, file: str, scale: str | None, **flags: Any) -> int:
    """Run an experiment FILE.

    FILE is a TOML file. Each key is the name of an option of `wsgiload sweep`, or app, title,
    source or notes. FILE replaces wsgiload.toml. Command-line options override FILE; the defaults
    below apply only to settings that FILE does not set.
    """
    return run_file(ctx, flags)


run.params += options_of_sweep()
