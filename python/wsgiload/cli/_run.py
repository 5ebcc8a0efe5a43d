"""``wsgiload run``: runs an experiment file, which is TOML with the options of a sweep, named like
their flags, the app and a description. An error names the file, the key and the fix in one line."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, time
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from wsgiload.catalogue.pin import parts_of
from wsgiload.cli._help import option
from wsgiload.cli._options import NAMES, GridCommand, as_click_takes, options_by_name
from wsgiload.cli._output import complain
from wsgiload.cli._sweep import DESCRIPTION, sweep
from wsgiload.cli.config import (
    SERVERS,
    SERVICES,
    Configuration,
    TomlValue,
    option_name,
    read_toml,
    require_known_key,
    require_own_settings,
)
from wsgiload.errors import UsageError
from wsgiload.experiment.plan import Experiment

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


# Keys that are not options.
APP, TITLE, SOURCE, NOTES, SCALE = "app", "title", "source", "notes", "scale"
_TEXTS = (APP, TITLE, SOURCE)
# Options whose values start with the name of a server.
_SERVER_OPTIONS = ("server_args", "server_config")


@dataclass(frozen=True, slots=True)
class ExperimentFile:
    """The content of a file: ``options`` by option name, and ``scales`` by name with the options
    that they override."""

    path: Path
    options: Mapping[str, TomlValue]
    servers: Mapping[str, TomlValue]
    services: Mapping[str, TomlValue]
    scales: Mapping[str, Mapping[str, TomlValue]]
    app: str | None = None
    title: str | None = None
    source: str | None = None
    notes: tuple[str, ...] = ()
    # Notes on options that a scale or this machine changed.
    changes: tuple[str, ...] = ()

    @property
    def configuration(self) -> Configuration:
        """The options as defaults of the command line. A run is named after its file."""
        return Configuration(
            {"name": self.path.stem, **self.options},
            [(self.path, self.servers)],
            [(self.path, self.services)],
        )

    def scaled(self, name: str | None) -> ExperimentFile:
        """The file with the options of a scale, and a note on what they override."""
        if name is None:
            return self
        if name not in self.scales:
            known = " or ".join(self.scales)
            fix = f"choose {known}" if known else f"add a table [{SCALE}.{name}], or omit --scale"
            raise UsageError(f"{self.path}: unknown scale {name!r}", fix)
        return self.replacing(self.scales[name], f"scale {name}")

    def replacing(self, options: Mapping[str, TomlValue], why: str) -> ExperimentFile:
        """The file with these option values, and a note on the values that they override."""
        changes = [
            f"{key} {_shown(value)} instead of {_shown(self.options.get(key, 'the default'))}"
            for key, value in options.items()
            if value != self.options.get(key)
        ]
        notes = (f"{why}: {'; '.join(changes)}",) if changes else ()
        options = {**self.options, **options}
        return replace(self, options=options, changes=(*self.changes, *notes))

    def for_servers(self, names: Sequence[str]) -> ExperimentFile:
        """The file for these servers, without options for other servers."""
        selected = [word.strip().lower() for name in names for word in parts_of(name)[:2] if word]
        relevant = {
            key: [one for one in _listed(self.options[key]) if _is_of_one(str(one), selected)]
            for key in _SERVER_OPTIONS
            if key in self.options
        }
        rest = {key: value for key, value in self.options.items() if key not in relevant}
        return replace(
            self, options=rest | {key: value for key, value in relevant.items() if value}
        )

    def describe(self, experiment: Experiment) -> Experiment:
        """The experiment with the file's description."""
        notes = (*self.notes, *self.changes)
        return replace(experiment, title=self.title, source=self.source, notes=notes)


def read_experiment_file(path: Path, known: Collection[str]) -> ExperimentFile:
    """Read a file. ``known`` contains the names of the allowed options."""
    rest = dict(read_toml(path))
    texts = {key: _text(path, key, rest.pop(key, None)) for key in _TEXTS}
    notes = _notes(path, rest.pop(NOTES, []))
    # A list named servers is the option --servers.
    servers = _table(path, SERVERS, rest.pop(SERVERS, {})) if _is_table(rest, SERVERS) else {}
    services = _table(path, SERVICES, rest.pop(SERVICES, {}))
    scales = _table(path, SCALE, rest.pop(SCALE, {}))
    return ExperimentFile(
        path=path,
        options=_options(rest, [*known, *_TEXTS, NOTES, SERVICES, SCALE], str(path)),
        servers=servers,
        services=services,
        scales={
            name: _options(_table(path, f"{SCALE}.{name}", table), known, f"{path}: [scale.{name}]")
            for name, table in scales.items()
        },
        app=texts[APP],
        title=texts[TITLE],
        source=texts[SOURCE],
        notes=notes,
    )


def _options(
    table: Mapping[str, TomlValue], known: Collection[str], where: str
) -> dict[str, TomlValue]:
    for key in table:
        require_known_key(key, known, where)
    return {option_name(key): value for key, value in table.items()}


def _is_table(table: Mapping[str, TomlValue], key: str) -> bool:
    return isinstance(table.get(key), Mapping)


def _table(path: Path, key: str, value: TomlValue) -> Mapping[str, TomlValue]:
    if isinstance(value, Mapping):
        return value
    raise UsageError(f"{path}: {key}: {_shown(value)} is not a table", f"write [{key}.NAME]")


def _text(path: Path, key: str, value: TomlValue | None) -> str | None:
    if value is None or (isinstance(value, str) and value.strip()):
        return value
    raise UsageError(f"{path}: {key}: {value!r} is not a string", f'write it like {key} = "…"')


def _listed(value: TomlValue) -> Sequence[TomlValue]:
    return value if isinstance(value, list) else [value]


def _is_of_one(assignment: str, servers: Sequence[str]) -> bool:
    """Whether ``NAME=…`` applies to one of these servers. Either name may omit the variant."""
    name = assignment.partition("=")[0].strip().lower()
    return any(
        name == one or name.startswith(f"{one}-") or one.startswith(f"{name}-") for one in servers
    )


def _notes(path: Path, value: TomlValue) -> tuple[str, ...]:
    listed = _listed(value)
    notes = [note for note in listed if isinstance(note, str)]
    if len(notes) < len(listed):
        fix = f'write it like {NOTES} = ["…", "…"]'
        raise UsageError(f"{path}: {NOTES}: {_shown(value)} is not a list of strings", fix)
    return tuple(notes)


def _shown(value: TomlValue) -> str:
    """The value in the notation of the command line."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
