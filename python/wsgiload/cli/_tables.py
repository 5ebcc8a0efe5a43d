"""``[servers.NAME]`` in a configuration file: a server of the user's own, with what belongs to it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping
from dataclasses import fields

import msgspec

from wsgiload.catalogue.own import require_name
from wsgiload.cli.config import SERVERS, TomlValue
from wsgiload.errors import UsageError
from wsgiload.experiment.public_options import ServerCommand

# What each key must be, and an example.
_KEYS = {
    "command": ("text", "'gunicorn shop.wsgi --bind {address}'"),
    "env": ("a table of text", '{ DEBUG = "0" }'),
    "cwd": ("text", '"backend"'),
    "setup": ("text, or a list of text", '"python manage.py migrate"'),
    "teardown": ("text, or a list of text", '"dropdb shop"'),
    "ready_path": ("text", '"/healthz"'),
    "stop_signal": ("text", '"SIGQUIT"'),
    "keepalive": ('"on", "off" or a number of requests', '"off"'),
}
_PLACE = re.compile(r"\$\.(\w+)")


def server_tables(servers: Mapping[str, TomlValue], path: str) -> dict[str, ServerCommand]:
    """The servers by name; an error names the file, the table and the key."""
    return {name: _server_table(name, value, path) for name, value in servers.items()}


def _server_table(name: str, value: TomlValue, path: str) -> ServerCommand:
    where = f"{path}: [{SERVERS}.{name}]"
    if not isinstance(value, Mapping):
        raise UsageError(
            f"{path}: [{SERVERS}]: {name!r} is not a table",
            f"write [{SERVERS}.{name}]; options of `wsgiload sweep` belong into [sweep]",
        )
    try:
        require_name(name)
    except UsageError as error:
        raise UsageError(
            f"{where}: {error.cause}", "use lower-case letters, digits and dashes"
        ) from None
    require_known(value, [field.name for field in fields(ServerCommand)], where)
    return _converted(dict(value), where)


def require_known(table: Collection[str], known: Collection[str], where: str) -> None:
    """Refuse a key that a table does not have."""
    for key in table:
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            fix = f"did you mean {close[0]}?" if close else f"the keys are {', '.join(known)}"
            raise UsageError(f"{where}: unknown key {key!r}", fix)


def _converted(table: dict[str, TomlValue], where: str) -> ServerCommand:
    keepalive = table.get("keepalive")
    if isinstance(keepalive, bool):
        table["keepalive"] = "on" if keepalive else "off"
    if "command" not in table:
        raise UsageError(f"{where}: command is missing", f"add command = {_KEYS['command'][1]}")
    try:
        return msgspec.convert(table, ServerCommand)
    except msgspec.ValidationError as error:
        found = _PLACE.search(str(error))
        key = found[1] if found is not None else "command"
        kind, example = _KEYS[key]
        fix = f"write it like {key} = {example}"
        raise UsageError(f"{where}: {key} must be {kind}", fix) from None
