"""Converts the options of ``wsgiload sweep`` and ``capacity`` to a SweepSpec."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from wsgiload.catalogue.names import load_catalogue
from wsgiload.catalogue.pin import server_in
from wsgiload.catalogue.user_server import commands_by_name
from wsgiload.cli._declared import given_options
from wsgiload.cli._options import configured_servers, configured_services, request_options_of
from wsgiload.errors import UsageError
from wsgiload.experiment.build import SweepSpec
from wsgiload.experiment.grid import parse_grid
from wsgiload.experiment.plan import ResourceLimits
from wsgiload.experiment.public_options import ServerCommand, ServerOptions, SweepOptions
from wsgiload.loads.public_options import LoadOptions


def spec_of(app: str | None, flags: Mapping[str, Any]) -> SweepSpec:
    """The sweep that APP and the options of ``wsgiload sweep`` or ``capacity`` describe."""
    if app is not None and flags["app_name"] is not None:
        raise UsageError(f"APP {app!r} and --app-name are mutually exclusive")
    commands, servers = _own_commands(flags, configured_servers())
    return SweepSpec(
        app=app,
        rates=flags.get("rates"),
        connections=flags.get("connections"),
        servers=servers,
        duration=flags["duration"],
        load=given_options(LoadOptions, flags),
        request=request_options_of(flags),
        server=given_options(
            ServerOptions, flags, command=commands, grid=parse_grid(flags["grid"])
        ),
        limits=given_options(ResourceLimits, flags),
        options=given_options(SweepOptions, flags),
        out=flags["out"],
        services=configured_services(),
    )


def _own_commands(
    flags: Mapping[str, Any], tables: Mapping[str, ServerCommand]
) -> tuple[dict[str, str | ServerCommand], tuple[str, ...] | None]:
    """The user's own servers to measure, and the other servers that --servers names.

    A table is measured if --servers names it, or if there is neither --servers nor --command. A
    --command with the name of a table replaces the table's command.
    """
    given, named = commands_by_name(flags["command"]), flags["servers"]
    selected = [server_in(name) for name in named or ()]
    _require_no_typo(selected, [*tables, *given], flags["servers_from"])
    chosen = [name for name in tables if name in selected]
    if named is None and not given:
        chosen = list(tables)
    commands: dict[str, str | ServerCommand] = {name: tables[name] for name in chosen}
    for name, command in given.items():
        table = tables.get(name)
        commands[name] = command if table is None else replace(table, command=command)
    others = tuple(name for name in named or () if name not in commands)
    return commands, None if named is None or (commands and not others) else others


def _require_no_typo(selected: Sequence[str], own: Sequence[str], folder: Path | None) -> None:
    """Raise UsageError for an unknown name that is similar to a table's name; the catalogue would
    suggest one of its servers instead."""
    for name in selected:
        close = difflib.get_close_matches(name, own, n=1)
        if close and name not in own and not load_catalogue(further=folder).has(name):
            raise UsageError(f"unknown server {name!r}", f"did you mean {close[0]}?")
