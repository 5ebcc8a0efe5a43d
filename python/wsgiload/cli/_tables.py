"""Reads the tables ``[servers.NAME]`` (the user's own servers) and ``[services.NAME]`` (supporting
services) of configuration files."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import TypeVar

import msgspec

from wsgiload.catalogue.user_server import require_name
from wsgiload.cli.config import SERVERS, SERVICES, TomlValue
from wsgiload.documents.typed import convert
from wsgiload.errors import UsageError
from wsgiload.experiment.public_options import ServerCommand, SupportingService

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
