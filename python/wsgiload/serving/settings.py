"""The settings with which a server was started: for the report, and to start it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from wsgiload.catalogue.contract import LaunchContext
from wsgiload.catalogue.names import ServerVariant
from wsgiload.catalogue.scripts import scripts_in
from wsgiload.documents.cell_result import ServerSettings, Versions
from wsgiload.environments.provision import Environment
from wsgiload.experiment.variables import without_secrets


def settings_of(
    found: ServerVariant,
    context: LaunchContext,
    command: Sequence[str],
    variables: Mapping[str, str],
    environment: Environment,
) -> ServerSettings:
    """What is known when the server is started; accept queue and keep-alive are found later."""
    variant, own = found.variant, found.server.own
    return ServerSettings(
        command=tuple(command),
        user_command=own.command if own is not None else None,
        folder=str(own.working_folder) if own is not None else None,
        setup=own.setup if own is not None else (),
        teardown=own.teardown if own is not None else (),
        ready_path=own.ready_path if own is not None else None,
        stop_signal=own.stop_signal if own is not None else None,
        scripts=scripts_in(command),
        requirements=found.server.requirements,
        system_packages=tuple(needed.package for needed in found.needs),
        added_arguments=found.arguments,
        config_file=str(found.config) if found.config is not None else None,
        workers=context.workers if variant.uses_workers else None,
        threads=context.threads if variant.uses_threads else None,
        backlog=None,
        keepalive=None,
        environment=without_secrets(variables),
        versions=Versions(
            server=environment.version,
            python=environment.python_version,
            packages=installed_packages(environment.bin.parent),
        ),
    )


def installed_packages(folder: Path) -> dict[str, str]:
    """Name and version of each distribution in a virtual environment, by its metadata folders."""
    found = {}
    for metadata in folder.glob("lib/*/site-packages/*.dist-info"):
        name, _, version = metadata.name.removesuffix(".dist-info").partition("-")
        found[name.replace("_", "-").lower()] = version
    return dict(sorted(found.items()))
