"""The settings with which a server was started, for the report and for starting it again."""

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
    variant: ServerVariant,
    context: LaunchContext,
    command: Sequence[str],
    variables: Mapping[str, str],
    environment: Environment,
) -> ServerSettings:
    """The settings known at the start; backlog and keep-alive are measured later."""
    kind, user_server = variant.variant, variant.server.user_server
    return ServerSettings(
        command=tuple(command),
        user_command=user_server.command if user_server is not None else None,
        folder=str(user_server.working_folder) if user_server is not None else None,
        setup=user_server.setup if user_server is not None else (),
        teardown=user_server.teardown if user_server is not None else (),
        ready_path=user_server.ready_path if user_server is not None else None,
        stop_signal=user_server.stop_signal if user_server is not None else None,
        scripts=scripts_in(command),
        requirements=variant.server.requirements,
        system_packages=tuple(needed.package for needed in variant.needs),
        added_arguments=variant.arguments,
        config_file=str(variant.config) if variant.config is not None else None,
        workers=context.workers if kind.uses_workers else None,
        threads=context.threads if kind.uses_threads else None,
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
    packages = {}
    for metadata in folder.glob("lib/*/site-packages/*.dist-info"):
        name, _, version = metadata.name.removesuffix(".dist-info").partition("-")
        packages[name.replace("_", "-").lower()] = version
    return dict(sorted(packages.items()))
