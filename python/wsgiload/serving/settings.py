"""The settings with which a server was started: for the report, and to start it again."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from wsgiload.catalogue.contract import LaunchContext
from wsgiload.catalogue.names import ServerVariant
from wsgiload.documents.summary import ServerSettings, Versions
from wsgiload.environments.provision import Environment

REDACTED = "(redacted)"
# Names of variables whose values nobody should read in a report.
_SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|API_?KEY|PRIVATE|AUTH|COOKIE", re.I)


def settings_of(
    found: ServerVariant,
    context: LaunchContext,
    command: Sequence[str],
    variables: Mapping[str, str],
    environment: Environment,
) -> ServerSettings:
    """What is known when the server is started; accept queue and keep-alive are found later."""
    variant = found.variant
    return ServerSettings(
        command=tuple(command),
        own_command=found.server.own.command if found.server.own is not None else None,
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


def without_secrets(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables by name, with the values of those that look like secrets replaced."""
    return {
        name: REDACTED if _SECRET.search(name) else value
        for name, value in sorted(variables.items())
    }


def installed_packages(folder: Path) -> dict[str, str]:
    """Name and version of each distribution in a virtual environment, by its metadata folders."""
    found = {}
    for metadata in folder.glob("lib/*/site-packages/*.dist-info"):
        name, _, version = metadata.name.removesuffix(".dist-info").partition("-")
        found[name.replace("_", "-").lower()] = version
    return dict(sorted(found.items()))
