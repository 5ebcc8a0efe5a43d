"""A user's changes to a catalogue server: extra arguments and a configuration file. Pure.

Order of precedence: extra arguments, then the profile's settings on the command line, then the
server's configuration file.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from wsgiload.catalogue.contract import Server
from wsgiload.catalogue.names import ServerVariant
from wsgiload.catalogue.user_server import UserServer
from wsgiload.errors import UsageError


@dataclass(frozen=True, slots=True)
class Adjustment:
    """Changes to one server; ``server`` may omit the variant."""

    server: str
    arguments: str = ""
    config: Path | None = None

    @property
    def option(self) -> str:
        """The command-line option, as shown in messages."""
        return f"{'--server-args' if self.config is None else '--server-config'} {self.server}"


def adjusted(
    variants: Iterable[ServerVariant], adjustments: Sequence[Adjustment]
) -> list[ServerVariant]:
    """The variants with the changes applied. Raises UsageError if a server does not support one."""
    changed = list(variants)
    for adjustment in adjustments:
        matching = [variant for variant in changed if adjustment.server in _names(variant)]
        if not matching:
            names = ", ".join(variant.id for variant in changed)
            raise UsageError(
                f"{adjustment.option}: not a measured server", f"choose one of {names}"
            )
        changed = [
            _with(variant, adjustment) if variant in matching else variant for variant in changed
        ]
    return changed


def _names(variant: ServerVariant) -> set[str]:
    return {variant.server.name, replace(variant, alias=None).id, variant.id}


def _with(variant: ServerVariant, adjustment: Adjustment) -> ServerVariant:
    server = variant.server
    if server.user_server is not None:
        raise UsageError(
            f"{adjustment.option}: your own command", f"add it to its {server.user_server.option}"
        )
    if adjustment.config is not None:
        if server.config_option is None:
            cause = f"{adjustment.option}: {server.name} does not support a configuration file here"
            raise UsageError(cause, _by_command(server, adjustment.config))
        return replace(variant, config=adjustment.config)
    if not variant.takes_arguments:
        cause = f"{adjustment.option}: {server.name} is started by a script of wsgiload"
        raise UsageError(cause, _by_command(server, None))
    return replace(variant, arguments=(*variant.arguments, *_words(adjustment)))


def _by_command(server: Server, config: Path | None) -> str:
    file = f" with {config.name}" if config is not None else ""
    return f"start {server.name}{file} with your own command: --command my-{server.name}='…'"


def _words(adjustment: Adjustment) -> list[str]:
    try:
        return shlex.split(adjustment.arguments)
    except ValueError as error:
        raise UsageError(f"{adjustment.option}: {error}", "check its quotation marks") from None


def settings_notes(variant: ServerVariant) -> list[str]:
    """Sentences that describe the user's changes and their precedence."""
    if variant.server.user_server is not None:
        return _notes_of_user_server(variant.id, variant.server.user_server)
    notes = []
    if variant.config is not None:
        notes.append(
            f"{variant.id} runs with {variant.config.name}; its command line takes precedence"
        )
    if variant.arguments:
        added = shlex.join(variant.arguments)
        notes.append(f"{variant.id} runs with {added}, which takes precedence over the profile")
    return notes


def _notes_of_user_server(name: str, user_server: UserServer) -> list[str]:
    notes = [f"{name} is your own command: {user_server.command}"]
    if user_server.keepalive is not None:
        notes.append(
            f"{name} is measured with keepalive = {user_server.keepalive} of {user_server.option}"
        )
    return notes


def adjusted_command(argv: Sequence[str], app: str, variant: ServerVariant) -> list[str]:
    """The command line with the changes; if the app is its last word, it stays last."""
    words, option = list(argv), variant.server.config_option
    added = list(variant.arguments)
    if variant.config is not None and option is not None:
        if option in words:
            words[words.index(option) + 1] = str(variant.config)
        else:
            added = [option, str(variant.config), *added]
    place = len(words) - 1 if app and words[-1].endswith(app) else len(words)
    return [*words[:place], *added, *words[place:]]
