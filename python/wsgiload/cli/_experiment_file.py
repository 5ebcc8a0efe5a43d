"""An experiment file: the options of a sweep as TOML, under the names of their flags, with the app
and a description. Every mistake in it is one line with the file, the key and the fix."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from wsgiload.catalogue.pin import parts_of
from wsgiload.cli.config import (
    SERVERS,
    SERVICES,
    Configuration,
    TomlValue,
    option_name,
    read_toml,
    require_known_key,
)
from wsgiload.errors import UsageError
from wsgiload.experiment.plan import Experiment
from wsgiload.report.tool_tables import Style

# What a file says beside options.
APP, TITLE, SOURCE, NOTES, SCALE = "app", "title", "source", "notes", "scale"
TABLES = "tables"
_TEXTS = (APP, TITLE, SOURCE)
# Options that name the server that they are about.
_OF_SERVERS = ("server_args", "server_config")


@dataclass(frozen=True, slots=True)
class ExperimentFile:
    """What a file says; ``options`` by their names in it, and ``scales`` by name, with the options
    that each replaces."""

    path: Path
    options: Mapping[str, TomlValue]
    servers: Mapping[str, TomlValue]
    services: Mapping[str, TomlValue]
    scales: Mapping[str, Mapping[str, TomlValue]]
    app: str | None = None
    title: str | None = None
    source: str | None = None
    notes: tuple[str, ...] = ()
    tables: Style | None = None
    # What a scale, or this machine, made of the options.
    changes: tuple[str, ...] = ()

    @property
    def configuration(self) -> Configuration:
        """The options, below those of the command line; a run is named after its file."""
        return Configuration(
            {"name": self.path.stem, **self.options},
            [(self.path, self.servers)],
            [(self.path, self.services)],
        )

    def scaled(self, name: str | None) -> ExperimentFile:
        """With the options of a scale, and a note of what they replace."""
        if name is None:
            return self
        if name not in self.scales:
            known = " or ".join(self.scales)
            fix = f"choose {known}" if known else f"add a table [{SCALE}.{name}], or omit --scale"
            raise UsageError(f"{self.path}: unknown scale {name!r}", fix)
        return self.replacing(self.scales[name], f"scale {name}")

    def replacing(self, options: Mapping[str, TomlValue], why: str) -> ExperimentFile:
        """With other values, and a note of those that they replace."""
        changes = [
            f"{key} {_shown(value)} instead of {_shown(self.options.get(key, 'the default'))}"
            for key, value in options.items()
            if value != self.options.get(key)
        ]
        notes = (f"{why}: {'; '.join(changes)}",) if changes else ()
        options = {**self.options, **options}
        return replace(self, options=options, changes=(*self.changes, *notes))

    def for_servers(self, names: Sequence[str]) -> ExperimentFile:
        """For other servers than its own: without what it sets of servers that are not among
        them."""
        meant = [word.strip().lower() for name in names for word in parts_of(name)[:2] if word]
        kept = {
            key: [one for one in _listed(self.options[key]) if _is_of_one(str(one), meant)]
            for key in _OF_SERVERS
            if key in self.options
        }
        rest = {key: value for key, value in self.options.items() if key not in kept}
        return replace(self, options=rest | {key: value for key, value in kept.items() if value})

    def describe(self, experiment: Experiment) -> Experiment:
        """The experiment with the file's description."""
        notes = (*self.notes, *self.changes)
        return replace(experiment, title=self.title, source=self.source, notes=notes)


def read_experiment_file(path: Path, known: Collection[str]) -> ExperimentFile:
    """The content of a file; ``known`` are the names of the options that it may have."""
    rest = dict(read_toml(path))
    texts = {key: _text(path, key, rest.pop(key, None)) for key in _TEXTS}
    notes = _notes(path, rest.pop(NOTES, []))
    tables = _style(path, _text(path, TABLES, rest.pop(TABLES, None)))
    # As a list, servers is an option.
    servers = _table(path, SERVERS, rest.pop(SERVERS, {})) if _is_table(rest, SERVERS) else {}
    services = _table(path, SERVICES, rest.pop(SERVICES, {}))
    scales = _table(path, SCALE, rest.pop(SCALE, {}))
    return ExperimentFile(
        path=path,
        options=_options(rest, [*known, *_TEXTS, NOTES, TABLES, SERVICES, SCALE], str(path)),
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
        tables=tables,
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


def _style(path: Path, text: str | None) -> Style | None:
    for style in get_args(Style):
        if text == style:
            known_style: Style = style
            return known_style
    if text is None:
        return None
    raise UsageError(
        f"{path}: {TABLES}: {text!r} is not a table format",
        f"choose one of {', '.join(get_args(Style))}",
    )


def _listed(value: TomlValue) -> Sequence[TomlValue]:
    return value if isinstance(value, list) else [value]


def _is_of_one(assignment: str, servers: Sequence[str]) -> bool:
    """Whether ``NAME=…`` is about one of them, which either may name without its variant."""
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
    """A value as it is written on the command line."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
