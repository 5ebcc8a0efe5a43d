"""Converts the options of ``wsgiload sweep``, and of commands that share them, to a SweepSpec."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from wsgiload.catalogue.names import load_catalogue
from wsgiload.catalogue.pin import server_in
from wsgiload.catalogue.user_server import commands_by_name
from wsgiload.cli._flags import ExperimentFlags, ServerFlags, SweepFlags
from wsgiload.cli._options import (
    configured_servers,
    configured_services,
    load_options_of,
    request_options_of,
    sending_options_of,
)
from wsgiload.errors import UsageError
from wsgiload.experiment.build import SweepSpec
from wsgiload.experiment.grid import parse_grid
from wsgiload.experiment.plan import ResourceLimits
from wsgiload.experiment.public_options import ServerCommand, ServerOptions, SweepOptions
from wsgiload.host.cpus import parse_cpu_list


def spec_of(app: str | None, flags: ExperimentFlags) -> SweepSpec:
    """The sweep that APP and the shared options describe."""
    if app is not None and flags["app_name"] is not None:
        raise UsageError(f"APP {app!r} and --app-name are mutually exclusive")
    commands, servers = _own_commands(flags, configured_servers())
    return SweepSpec(
        app=app,
        servers=servers,
        duration=flags["duration"],
        load=replace(sending_options_of(flags), cooldown=flags["cooldown"]),
        request=request_options_of(flags, flags["path"]),
        server=_server_options(flags, commands),
        limits=_limits(flags),
        options=SweepOptions(
            name=flags["name"],
            sample_interval=flags["sample_interval"],
            store_secrets=flags["store_secrets"],
            show=flags["show"],
        ),
        out=flags["out"],
        services=configured_services(),
    )


def sweep_spec_of(app: str | None, flags: SweepFlags, slo: tuple[str, ...]) -> SweepSpec:
    """The sweep that APP and the options of ``wsgiload sweep`` describe."""
    spec = spec_of(app, flags)
    load = replace(
        load_options_of(flags),
        cooldown=flags["cooldown"],
        warmup_requests=flags["warmup_requests"],
    )
    options = replace(
        spec.options,
        runs=flags["runs"],
        compare=flags["compare"],
        budget=flags["budget"],
        margin=flags["margin"],
        aggregate=flags["aggregate"],
        slo=slo,
        settle=flags["settle"],
        reruns=flags["reruns"],
        intervene=flags["intervene"],
    )
    rates, connections = flags["rates"], flags["connections"]
    return replace(spec, rates=rates, connections=connections, load=load, options=options)


def _own_commands(
    flags: ServerFlags, tables: Mapping[str, ServerCommand]
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


def _server_options(
    flags: ServerFlags, commands: Mapping[str, str | ServerCommand]
) -> ServerOptions:
    return ServerOptions(
        profile=flags["profile"],
        interface=flags["interface"],
        workers=flags["workers"],
        server_threads=flags["server_threads"],
        grid=parse_grid(flags["grid"]),
        app_name=flags["app_name"],
        chdir=flags["chdir"],
        pythonpath=flags["pythonpath"],
        python=flags["python"],
        python_version=flags["python_version"],
        port=flags["port"],
        ready_timeout=flags["ready_timeout"],
        command=commands,
        servers_from=flags["servers_from"],
        server_args=dict(flags["server_args"]),
        server_config=dict(flags["server_config"]),
        env=dict(flags["env"]),
        env_file=flags["env_file"],
    )


def _limits(flags: ServerFlags) -> ResourceLimits:
    server_cpus, client_cpus = flags["server_cpus"], flags["client_cpus"]
    return ResourceLimits(
        cpus=flags["cpus"],
        memory_bytes=flags["memory"],
        pids=flags["pids"],
        policy=flags["limits"],
        server_cpus=parse_cpu_list(server_cpus) if server_cpus else None,
        client_cpus=parse_cpu_list(client_cpus) if client_cpus else None,
        user=flags["user"],
    )
