"""Reads the user's own servers and supporting services from the options and refuses options that
contradict them.

Checks that their programs exist; starts nothing.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from wsgiload.catalogue.pin import server_in
from wsgiload.catalogue.user_server import (
    UserServer,
    placeholders_of,
    require_runnable,
    split_words,
)
from wsgiload.environments.user_environment import require_user_programs
from wsgiload.errors import UsageError, require
from wsgiload.experiment.grid import require_exclusive
from wsgiload.experiment.plan import Size
from wsgiload.experiment.public_options import ServerCommand, ServerOptions, SupportingService
from wsgiload.loads.public_options import parse_keepalive
from wsgiload.loads.request import Request


def own_servers_of(
    options: ServerOptions, folder: Path, variables: Mapping[str, str]
) -> tuple[UserServer, ...]:
    """The user's own servers, started in ``folder``. Raises UsageError for a server that cannot be
    started or whose address would be unknown."""
    servers = tuple(_own_server(name, given, folder) for name, given in options.command.items())
    for one in servers:
        require_runnable(one, options.port)
        require_user_programs(one, {**variables, **one.env})
    return servers


def _own_server(name: str, given: str | ServerCommand, folder: Path) -> UserServer:
    if isinstance(given, str):
        return UserServer(name, given, folder)
    own = UserServer(
        name=name,
        command=given.command,
        folder=folder,
        cwd=given.cwd,
        env=dict(given.env),
        setup=_several(given.setup),
        teardown=_several(given.teardown),
        ready_path=given.ready_path,
        stop_signal=given.stop_signal,
        keepalive=given.keepalive,
        is_table=True,
    )
    exists = own.working_folder.is_dir()
    require(
        exists, f"{own.option}: directory {own.working_folder} does not exist", "correct its cwd"
    )
    if own.ready_path is not None:
        is_path = own.ready_path.startswith("/")
        fix = f"write it like /{own.ready_path}"
        require(is_path, f"{own.option}: ready_path must start with a slash", fix)
        Request(own.ready_path)  # raises UsageError for an invalid path
    if own.keepalive is not None:
        parse_keepalive(str(own.keepalive))
    return own


def _several(commands: str | Sequence[str]) -> tuple[str, ...]:
    return (commands,) if isinstance(commands, str) else tuple(commands)


def require_compatible_with_own(
    app: str | None,
    named: Sequence[str],
    options: ServerOptions,
    sizes: Sequence[Size],
    own: Sequence[UserServer],
) -> None:
    """Raise UsageError for options that contradict the user's own servers or have no effect on
    them. ``named`` are the servers of ``--servers``."""
    if not own:
        return
    option = _option_of(own)
    require_exclusive(option, {"--grid app=": sizes[0].app}, "the command itself names the app")
    names = {one.name for one in own}
    of_catalogue = [name for name in named if server_in(name) not in names]
    if not of_catalogue:
        _refuse_without_effect(options, sizes, own)
    elif app is None and options.app_name is None:
        raise UsageError(
            f"--servers {of_catalogue[0]} with {option} requires APP: they must serve the same app",
            "add your app, such as shop.wsgi:application, or omit --servers",
        )


def _option_of(own: Sequence[UserServer]) -> str:
    """The option that defines the servers, for messages."""
    return "[servers.NAME]" if own[0].is_table else "--command"


def _refuse_without_effect(
    options: ServerOptions, sizes: Sequence[Size], own: Sequence[UserServer]
) -> None:
    """Raise UsageError for options that have no effect if only the user's own servers are
    measured."""
    of_catalogue: Mapping[str, object] = {
        "--python": options.python,
        "--pythonpath": options.pythonpath or None,
        "--python-version": options.python_version,
        "--grid python=": sizes[0].python,
        "--grid profile=": sizes[0].profile,
        "--interface asgi": options.interface == "asgi" or None,
    }
    fix = "omit it, or add catalogue servers with --servers"
    whose = _option_of(own)
    require_exclusive(f"{whose} without --servers", of_catalogue, fix)

    used = frozenset[str]().union(*(placeholders_of(one) for one in own))
    counts = {
        ("workers", "--workers"): sizes[0].workers,
        ("threads", "--server-threads"): sizes[0].threads,
    }
    for (placeholder, option), value in counts.items():
        if value is not None and placeholder not in used:
            raise UsageError(
                f"{option} has no effect: no {whose} has the placeholder {{{placeholder}}}",
                f"add {{{placeholder}}} to the command",
            )


MAX_PORT = 65_535


def supporting_services_of(
    services: Mapping[str, SupportingService], folder: Path, variables: Mapping[str, str]
) -> dict[str, SupportingService]:
    """The services with absolute directories. Raises UsageError for one that cannot be started."""
    return {name: _checked(name, service, folder, variables) for name, service in services.items()}


def _checked(
    name: str, service: SupportingService, folder: Path, variables: Mapping[str, str]
) -> SupportingService:
    where, place = f"[services.{name}]", (folder / service.cwd).resolve()
    is_one = (service.command is None) != (service.attach is None)
    require(is_one, f"{where} needs either command or attach", "give one of them")
    require(place.is_dir(), f"{where}: directory {place} does not exist", "correct its cwd")
    is_signal = service.stop_signal in signal.Signals.__members__
    require(is_signal, f"{where}: {service.stop_signal!r} is not a signal", "write it like SIGINT")
    commands = {"command": service.command}
    if isinstance(service.ready, int):
        is_port = 0 < service.ready <= MAX_PORT
        require(is_port, f"{where}: ready = {service.ready} is not a port", "write it like 5432")
    else:
        commands["ready"] = service.ready
    for key, command in commands.items():
        if command is not None:
            _require_program(f"{key} of {where}", command, place, {**variables, **service.env})
    return replace(service, cwd=str(place))


def _require_program(where: str, command: str, folder: Path, variables: Mapping[str, str]) -> None:
    name = split_words(command, where)[0]
    if os.sep in name:
        if not os.access(folder / name, os.X_OK):
            raise UsageError(f"{where}: there is no program {name} in {folder}", "correct its path")
    elif shutil.which(name, path=variables.get("PATH")) is None:
        raise UsageError(f"{where}: there is no program {name!r} on your PATH", "give its path")
