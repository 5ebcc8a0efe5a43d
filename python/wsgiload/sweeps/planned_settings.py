"""The settings with which the servers of a plan would be started. Starts and installs nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from wsgiload.catalogue.adjust import adjusted_command
from wsgiload.catalogue.contract import Server
from wsgiload.catalogue.names import ServerVariant
from wsgiload.documents.cell_result import ServerSettings
from wsgiload.environments.provision import Environment
from wsgiload.experiment.plan import Experiment
from wsgiload.report.command_line import PORT
from wsgiload.results.record import Setting
from wsgiload.scratch import scratch_folder
from wsgiload.serving.launch import settings_of
from wsgiload.sweeps.cell import launch_context, load_settings_of

_PINNED = r"^{name}==(?P<version>[^\s;]+)"


@dataclass(frozen=True, slots=True)
class _NotInstalled(Environment):
    """An environment that is not installed; its paths are placeholders."""

    def environ(self, app_dir: Path, inherited: Mapping[str, str] | None = None) -> dict[str, str]:
        return {}


def planned_settings(
    variants: Mapping[str, ServerVariant], setting: Setting
) -> dict[str, ServerSettings]:
    """The settings by server name, without packages, which are unknown before the installation."""
    return {name: _settings(variant, setting) for name, variant in variants.items()}


def _settings(variant: ServerVariant, setting: Setting) -> ServerSettings:
    experiment, server = setting.experiment, variant.server
    folder = Path("/environment/bin")
    environment = _NotInstalled(variant.id, folder / "python", folder, locked_version(server), None)
    context_in = launch_context(variant, environment, setting, experiment.port or int(PORT))
    with scratch_folder() as scratch:
        context = context_in(scratch)
        command = adjusted_command(server.command(variant.variant, context), context.app, variant)
        variables = server.environ(variant.variant, context) | dict(variant.variables)
        planned = settings_of(variant, context, command, variables, environment)
    keepalive = _keepalive(variant, experiment)
    return replace(planned, backlog=context.backlog, keepalive=keepalive)


def _keepalive(variant: ServerVariant, experiment: Experiment) -> Literal["on", "off"] | None:
    """The keep-alive mode that the load requests and the server's file declares; None for a user's
    command, which is probed."""
    profile = variant.profile or experiment.profile
    if load_settings_of(variant, experiment.load).keepalive == "off":
        return "off"
    if variant.server.user_server is not None:
        return None
    return "on" if variant.variant.keeps_connections(profile) else "off"


def locked_version(server: Server) -> str | None:
    """The version that would be installed; None for a server without a distribution or a lock."""
    if server.pinned is not None or server.distribution is None:
        return server.pinned
    if server.user_server is not None or not server.lock_path.is_file():
        return None
    pattern = _PINNED.format(name=re.escape(server.distribution))
    text = server.lock_path.read_text(encoding="utf-8")
    pin = re.search(pattern, text, re.MULTILINE | re.IGNORECASE)
    return pin["version"] if pin is not None else None
