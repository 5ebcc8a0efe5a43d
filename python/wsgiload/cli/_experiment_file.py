"""Experiment files: TOML files with the options of a sweep, named like their flags, the app and a
description. An error names the file, the key and the fix in one line."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

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
