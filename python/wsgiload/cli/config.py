"""Reads option values, ``[servers.NAME]`` and ``[services.NAME]`` from configuration files.

Precedence: command line, ``WSGILOAD_*``, ``wsgiload.toml`` (or ``--config``), ``[tool.wsgiload]``
in ``pyproject.toml``, default. click resolves the first two; this module reads the files.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date, time
from pathlib import Path
from typing import TypeAlias, TypeVar

import msgspec

from wsgiload.account import require_own
from wsgiload.catalogue.user_server import require_name
from wsgiload.documents.base import convert
from wsgiload.errors import UsageError
from wsgiload.experiment.public_options import ServerCommand, SupportingService
from wsgiload.foreign_files import CONFIGURATION, read_file, too_deep

TomlValue: TypeAlias = (
    "str | int | float | bool | date | time | Sequence[TomlValue] | Mapping[str, TomlValue]"
)
Table: TypeAlias = Mapping[str, TomlValue]

OWN_FILE = "wsgiload.toml"
PROJECT_FILE = "pyproject.toml"
# The table of the user's own servers; a list with this name is the option --servers.
SERVERS = "servers"
SERVICES = "services"


@dataclass(frozen=True, slots=True)
class Configuration:
    """The content of the files for one command: defaults of its options, and the tables
    ``[servers]`` and ``[services]``, each with its file."""

    defaults: Mapping[str, TomlValue]
    servers: Sequence[tuple[Path, Mapping[str, TomlValue]]]
    services: Sequence[tuple[Path, Mapping[str, TomlValue]]]


def read_configuration(
    folder: Path,
    explicit: Path | None,
    command: str,
    options_by_command: Callable[[], Mapping[str, Collection[str]]],
) -> Configuration:
    """Read and merge all applicable files.

    ``options_by_command`` returns the option names of each command. It is called only if there is
    a file, because it imports every command. A key at the top level applies to every command with
    this option; a key in a table named after a command applies only to that command.
    """
    merged: dict[str, TomlValue] = {}
    named: dict[str, list[tuple[Path, Mapping[str, TomlValue]]]] = {SERVERS: [], SERVICES: []}
    tables = tables_of(folder, explicit)
    options = options_by_command() if tables else {}
    for path, table in tables:
        rest = dict(table)
        for key, entries in named.items():
            value = table.get(key)
            if isinstance(value, Mapping):
                entries.append((path, value))
                del rest[key]
        merged |= _defaults(rest, path, command, options)
    return Configuration(merged, named[SERVERS], named[SERVICES])


def tables_of(folder: Path, explicit: Path | None = None) -> list[tuple[Path, Table]]:
    """The tables of all files, the lowest precedence first."""
    tables: list[tuple[Path, Table]] = []
    project = folder / PROJECT_FILE
    if _is_there(project):
        tool = read_toml(project).get("tool", {})
        if isinstance(tool, Mapping) and "wsgiload" in tool:
            own_table = tool["wsgiload"]
            if not isinstance(own_table, Mapping):
                raise UsageError(
                    f"{project}: tool.wsgiload is not a table", "write [tool.wsgiload]"
                )
            require_own_settings(project)
            tables.append((project, own_table))
    own = explicit or folder / OWN_FILE
    if explicit is not None or _is_there(own):
        require_own_settings(own)
        tables.append((own, read_toml(own)))
    return tables


def _is_there(path: Path) -> bool:
    """Whether there is anything with this name; what cannot be read must not be ignored."""
    return os.path.lexists(path)


def require_own_settings(path: Path) -> None:
    """Raise UsageError if root would follow the settings of another user, which name files to read
    and to write as well as commands. Those are not the app's, so --user does not cover them."""
    require_own([path], "follow its settings", "a file of root (--user covers only the app)")


def read_toml(path: Path) -> Table:
    """Read a TOML file."""
    try:
        return tomllib.loads(read_file(CONFIGURATION, path).decode("utf-8-sig"))
    except FileNotFoundError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except RecursionError as error:
        raise too_deep(path) from error
    except ValueError as error:  # invalid TOML or UTF-8
        raise UsageError(f"{path} is not valid TOML: {error}") from error


def _defaults(
    table: Table, path: Path, command: str, options: Mapping[str, Collection[str]]
) -> dict[str, TomlValue]:
    known = {name for names in options.values() for name in names}
    defaults: dict[str, TomlValue] = {}
    for key, value in table.items():
        is_table = isinstance(value, Mapping)
        if key in options and not is_table and option_name(key) not in known:
            raise UsageError(
                f"{path}: {key!r} is the name of a command", f"put its options in a [{key}] table"
            )
        if key in options and isinstance(value, Mapping):
            for inner, inner_value in value.items():
                require_known_key(inner, options[key], f"{path}: [{key}]")
                if key == command:
                    defaults[option_name(inner)] = inner_value
            continue
        require_known_key(key, {*known, *options}, str(path))
        if option_name(key) in options[command]:
            defaults.setdefault(option_name(key), value)
    return defaults


def option_name(key: str) -> str:
    """The name of the option with this key."""
    return key.replace("-", "_")


def require_known_key(key: str, known: Collection[str], where: str) -> None:
    """Raise UsageError for a key without an option."""
    if option_name(key) in known:
        return
    name = option_name(key)
    if name == "trust_folder":
        raise UsageError(f"{where}: {key} cannot be set in a file", "use the flag --trust-folder")
    close = difflib.get_close_matches(name, known)
    # The first letter is rarely mistyped.
    close.sort(key=lambda one: one[:1] != name[:1])
    hint = f"did you mean {close[0]}?" if close else "see `wsgiload sweep --help` for the options"
    raise UsageError(f"{where}: unknown key {key!r}", hint)


# The type of each key in words, and an example.
_KEYS = {
    "command": ("text", "'gunicorn shop.wsgi --bind {address}'"),
    "env": ("a table of strings", '{ DEBUG = "0" }'),
    "cwd": ("text", '"backend"'),
    "setup": ("a string, or a list of strings", '"python manage.py migrate"'),
    "teardown": ("a string, or a list of strings", '"dropdb shop"'),
    "ready_path": ("text", '"/healthz"'),
    "stop_signal": ("text", '"SIGQUIT"'),
    "attach": ("a PID or the path of a cgroup", "4711"),
    "ready": ("a port, or a command as a string", "5432"),
    "keepalive": ('"on", "off" or a number of requests', '"off"'),
}
Given = TypeVar("Given", ServerCommand, SupportingService)
_PLACE = re.compile(r"\$\.(\w+)")


def server_tables(servers: Mapping[str, TomlValue], path: str) -> dict[str, ServerCommand]:
    """The servers by name. Errors name the file, the table and the key."""
    return {
        name: _table_of(f"{SERVERS}.{name}", name, value, ServerCommand, path)
        for name, value in servers.items()
    }


def service_tables(services: Mapping[str, TomlValue], path: str) -> dict[str, SupportingService]:
    """The supporting services by name. Errors name the file, the table and the key."""
    return {
        name: _table_of(f"{SERVICES}.{name}", name, value, SupportingService, path)
        for name, value in services.items()
    }


def _table_of(table: str, name: str, value: TomlValue, kind: type[Given], path: str) -> Given:
    where = f"{path}: [{table}]"
    if not isinstance(value, Mapping):
        family = table.partition(".")[0]
        raise UsageError(f"{path}: [{family}]: {name!r} is not a table", f"write [{table}]")
    try:
        require_name(name)
    except UsageError as error:
        raise UsageError(
            f"{where}: {error.cause}", "use lower-case letters, digits and dashes"
        ) from None
    require_known(value, [field.name for field in fields(kind)], where)
    return _converted(dict(value), kind, where)


def require_known(table: Collection[str], known: Collection[str], where: str) -> None:
    """Raise UsageError for an unknown key."""
    for key in table:
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            fix = f"did you mean {close[0]}?" if close else f"the keys are {', '.join(known)}"
            raise UsageError(f"{where}: unknown key {key!r}", fix)


def _converted(table: dict[str, TomlValue], kind: type[Given], where: str) -> Given:
    keepalive = table.get("keepalive")
    if isinstance(keepalive, bool):
        table["keepalive"] = "on" if keepalive else "off"
    if kind is ServerCommand and "command" not in table:
        raise UsageError(f"{where}: command is missing", f"add command = {_KEYS['command'][1]}")
    try:
        return convert(table, kind)
    except msgspec.ValidationError as error:
        match = _PLACE.search(str(error))
        key = match[1] if match is not None else "command"
        expected, example = _KEYS[key]
        fix = f"write it like {key} = {example}"
        raise UsageError(f"{where}: {key} must be {expected}", fix) from None
