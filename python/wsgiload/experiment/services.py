"""Validates the supporting services of an experiment. Starts nothing."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from wsgiload.catalogue.user_server import split_words
from wsgiload.errors import UsageError, require
from wsgiload.experiment.public_options import SupportingService

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
