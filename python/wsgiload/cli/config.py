"""Where an option's value comes from when it is not on the command line: configuration files, by
section.

Precedence: command line, ``WSGILOAD_*``, ``wsgiload.toml`` (or ``--config``), ``[tool.wsgiload]``
in ``pyproject.toml``, default. The first two are click's to resolve; this module reads the files.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time
from pathlib import Path
from typing import TypeAlias

from wsgiload.errors import UsageError

TomlValue: TypeAlias = (
    "str | int | float | bool | date | time | Sequence[TomlValue] | Mapping[str, TomlValue]"
)
Table: TypeAlias = Mapping[str, TomlValue]

OWN_FILE = "wsgiload.toml"
PROJECT_FILE = "pyproject.toml"
# The table of the user's own servers; as a list it is the option --servers.
SERVERS = "servers"
SERVICES = "services"


@dataclass(frozen=True, slots=True)
class Configuration:
    """What the files say to one command: defaults of its options, and the tables ``[servers]`` with
    the file that each is from."""

    defaults: Mapping[str, TomlValue]
    servers: Sequence[tuple[Path, Mapping[str, TomlValue]]]
    services: Sequence[tuple[Path, Mapping[str, TomlValue]]]


def read_configuration(
    folder: Path,
    explicit: Path | None,
    command: str,
    options_by_command: Callable[[], Mapping[str, Collection[str]]],
) -> Configuration:
    """Every file that applies, the least important first.

    ``options_by_command`` returns, by command, the option names that it takes; it is called only
    if there is a file, because it imports every command. A key at the top level applies to
    each command that has such an option; a table named like a command applies to it alone.
    """
    merged: dict[str, TomlValue] = {}
    named: dict[str, list[tuple[Path, Mapping[str, TomlValue]]]] = {SERVERS: [], SERVICES: []}
    tables = _tables(folder, explicit)
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


def _tables(folder: Path, explicit: Path | None) -> list[tuple[Path, Table]]:
    """Least important first."""
    tables: list[tuple[Path, Table]] = []
    project = folder / PROJECT_FILE
    if project.is_file():
        tool = read_toml(project).get("tool", {})
        if isinstance(tool, Mapping) and "wsgiload" in tool:
            own_table = tool["wsgiload"]
            if not isinstance(own_table, Mapping):
                raise UsageError(
                    f"{project}: tool.wsgiload is not a table", "write [tool.wsgiload]"
                )
            tables.append((project, own_table))
    own = explicit or folder / OWN_FILE
    if explicit is not None or own.is_file():
        tables.append((own, read_toml(own)))
    return tables


def read_toml(path: Path) -> Table:
    """A file of configuration."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:  # TOML's own, and bytes that are not UTF-8
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
    """The name of the option that a key means."""
    return key.replace("-", "_")


def require_known_key(key: str, known: Collection[str], where: str) -> None:
    """Refuse a key that no option has."""
    if option_name(key) in known:
        return
    name = option_name(key)
    close = difflib.get_close_matches(name, known)
    # Hardly anybody gets the first letter wrong.
    close.sort(key=lambda one: one[:1] != name[:1])
    hint = f"did you mean {close[0]}?" if close else "see `wsgiload sweep --help` for the options"
    raise UsageError(f"{where}: unknown key {key!r}", hint)
