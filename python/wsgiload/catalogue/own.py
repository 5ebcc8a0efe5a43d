"""Servers of the user's own: a command with placeholders, run like a server of the catalogue.

Pure: whether its program exists is looked up where it is to be run (see ``environments.own``).
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from wsgiload.catalogue.contract import LaunchContext, Server, Variant
from wsgiload.errors import UsageError, require

# The name of a command that was given none.
UNNAMED = "command"
STOP_TIMEOUT_S = 10.0
# As a shell reports a process that died of the SIGTERM it was sent.
TERMINATED_IN_SHELL = 143

NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
_NAMED = re.compile(r"([\w.-]+)=(.*)", re.DOTALL)
# ``{{word}}`` stands for the text ``{word}``; any other brace is what it is.
_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}|\{(\w+)\}")
_WHERE_TO_LISTEN = frozenset({"port", "address"})
_PLACEHOLDERS = ("host", "port", "address", "workers", "threads")


@dataclass(frozen=True, slots=True)
class OwnServer:
    """What a user says of a server of his own: its name, the command that starts it, and the folder
    to start it in."""

    name: str
    command: str
    folder: Path

    @property
    def option(self) -> str:
        """Where the user said it, for messages."""
        return "--command" if self.name == UNNAMED else f"--command {self.name}"


def parse_command(text: str) -> tuple[str, str]:
    """Name and command of ``--command``: ``prod=gunicorn …``, or a command alone."""
    named = _NAMED.fullmatch(text)
    name, command = named.groups() if named is not None else (UNNAMED, text)
    fix = "write it like --command 'gunicorn shop.wsgi --bind {address}'"
    require(bool(command.strip()), f"--command {text!r} contains no command", fix)
    return name, command


def commands_by_name(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The commands by their names, none of which may be given twice."""
    commands: dict[str, str] = {}
    for name, command in pairs:
        if name in commands:
            cause = f"--command {name} was given twice"
            if name == UNNAMED:
                cause = "several --command options without a name"
            raise UsageError(cause, "name each, as in --command prod='…' --command new='…'")
        commands[name] = command
    return commands


def require_name(name: str) -> None:
    """Refuse a name that could be mistaken for something else."""
    require(NAME.fullmatch(name) is not None, f"{name!r} is not a valid name", _name_fix(name))


def _name_fix(name: str) -> str:
    if name.isupper():
        return f"set a variable with env, as in --command prod='env {name}=… gunicorn …'"
    return "use lower-case letters, digits and dashes, as in --command prod='…'"


def words_of(own: OwnServer) -> list[str]:
    """The words of its command, split as a shell does; nothing else of a shell applies."""
    try:
        return shlex.split(own.command)
    except ValueError as error:
        raise UsageError(f"{own.option}: {error}", "check its quotation marks") from None


def placeholders_of(own: OwnServer) -> frozenset[str]:
    """The names of its placeholders, known or not."""
    found = (_PLACEHOLDER.finditer(word) for word in words_of(own))
    return frozenset(one[2] for matches in found for one in matches if one[2] is not None)


def require_runnable(own: OwnServer, port: int | None) -> None:
    """Refuse a command with unknown placeholders, or one that would listen nobody knows where."""
    require_name(own.name)
    used = placeholders_of(own)
    require(
        "socket" not in used,
        f"{own.option}: {{socket}} is not available: servers are measured over TCP",
        "listen on {address} instead",
    )
    for name in sorted(used - set(_PLACEHOLDERS)):
        cause = f"{own.option}: unknown placeholder {{{name}}}"
        raise UsageError(cause, _known_placeholders(name))
    require(
        bool(used & _WHERE_TO_LISTEN) or port is not None,
        f"{own.option} has neither {{address}} nor {{port}}, so its port is unknown",
        "add one, as in --bind {address}, or pass its fixed port with --port",
    )


def _known_placeholders(name: str) -> str:
    close = difflib.get_close_matches(name, _PLACEHOLDERS, n=1)
    if close:
        return f"did you mean {{{close[0]}}}?"
    known = ", ".join(f"{{{one}}}" for one in _PLACEHOLDERS)
    return f"use {known}, or write {{{{{name}}}}} for the text {{{name}}}"


def server_of(own: OwnServer) -> Server:
    """It as the catalogue has servers."""
    used = placeholders_of(own)
    variant = Variant(
        name="default",
        summary=own.command,
        keepalive=True,  # what it does is probed
        uses_workers="workers" in used,
        uses_threads="threads" in used,
    )
    return Server(
        name=own.name,
        summary="your own command",
        homepage="",
        source=own.folder,
        requirements=(),
        distribution=None,
        variants=(variant,),
        default_variant=variant.name,
        command=lambda _, context: command_line(own, context),
        stop_timeout_s=STOP_TIMEOUT_S,
        clean_exit_codes=(0, -15, TERMINATED_IN_SHELL),
        own=own,
    )


def command_line(own: OwnServer, context: LaunchContext) -> list[str]:
    """Its words with every placeholder filled in."""
    values = {
        "host": context.host,
        "port": context.port,
        "address": context.address,
        "workers": context.workers,
        "threads": context.threads,
    }
    return [_filled(word, values) for word in words_of(own)]


def _filled(word: str, values: Mapping[str, object]) -> str:
    return _PLACEHOLDER.sub(
        lambda found: f"{{{found[1]}}}" if found[2] is None else str(values[found[2]]), word
    )
