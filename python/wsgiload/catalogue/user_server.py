"""Servers that a user defines: a command with placeholders, run like a catalogue server.

Pure: ``environments.user_environment`` checks whether the program exists.
"""

from __future__ import annotations

import difflib
import re
import shlex
import signal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from wsgiload.catalogue.contract import LaunchContext, Server, Variant
from wsgiload.errors import UsageError, require

# The name of an unnamed ``--command``.
UNNAMED = "command"
STOP_TIMEOUT_S = 10.0
# A shell's exit code for a process that was killed: this plus the signal's number.
ENDED_BY_SIGNAL = 128

NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
_NAMED = re.compile(r"([\w.-]+)=(.*)", re.DOTALL)
# ``{{word}}`` stands for the text ``{word}``; other braces are literal.
_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}|\{(\w+)\}")
_LISTEN_PLACEHOLDERS = frozenset({"port", "address"})
_ADDRESS_PLACEHOLDERS = ("host", "port", "address")
_PLACEHOLDERS = (*_ADDRESS_PLACEHOLDERS, "workers", "threads")


@dataclass(frozen=True, slots=True)
class UserServer:
    """The user's definition of a server: its name, the command that starts it, the folder of the
    app, and the working directory in it.

    ``setup`` commands run before each start and ``teardown`` commands after its end. ``env``
    overrides the variables of all servers. The server is ready once ``ready_path`` responds, by
    default the path of the load. ``keepalive`` is the keep-alive mode of the load; None: as in the
    experiment. ``is_table``: defined by a table of a configuration file.
    """

    name: str
    command: str
    folder: Path
    cwd: str = "."
    env: Mapping[str, str] = field(default_factory=dict)
    setup: tuple[str, ...] = ()
    teardown: tuple[str, ...] = ()
    ready_path: str | None = None
    stop_signal: str = "SIGTERM"
    keepalive: Literal["on", "off"] | int | None = None
    is_table: bool = False

    @property
    def working_folder(self) -> Path:
        """The working directory of the command."""
        return self.folder / self.cwd

    @property
    def option(self) -> str:
        """The option or table that defines the server, as shown in messages."""
        if self.is_table:
            return f"[servers.{self.name}]"
        return "--command" if self.name == UNNAMED else f"--command {self.name}"

    @property
    def hooks(self) -> tuple[tuple[str, str], ...]:
        """The setup and teardown commands, each with its origin for messages."""
        return (
            *((f"setup of {self.option}", command) for command in self.setup),
            *((f"teardown of {self.option}", command) for command in self.teardown),
        )


def parse_command(text: str) -> tuple[str, str]:
    """Name and command of ``--command``: ``prod=gunicorn …``, or a command alone."""
    named = _NAMED.fullmatch(text)
    name, command = named.groups() if named is not None else (UNNAMED, text)
    fix = "write it like --command 'gunicorn shop.wsgi --bind {address}'"
    require(bool(command.strip()), f"--command {text!r} contains no command", fix)
    return name, command


def commands_by_name(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The commands by name. Raises UsageError for a repeated name."""
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
    """Raise UsageError unless the name consists of lower-case letters, digits and dashes."""
    require(NAME.fullmatch(name) is not None, f"{name!r} is not a valid name", _name_fix(name))


def _name_fix(name: str) -> str:
    if name.isupper():
        return f"set a variable with env, as in --command prod='env {name}=… gunicorn …'"
    return "use lower-case letters, digits and dashes, as in --command prod='…'"


def words_of(user_server: UserServer) -> list[str]:
    """The words of the command."""
    return split_words(user_server.command, user_server.option)


def split_words(command: str, where: str) -> list[str]:
    """The words of a command, split like in a shell, without other shell features."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"{where}: {error}", "check its quotation marks") from None
    require(bool(words), f"{where} is empty", "name the program to run")
    return words


def placeholders_of(user_server: UserServer) -> frozenset[str]:
    """The names of the placeholders, known or not."""
    return _placeholders_in(words_of(user_server))


def _placeholders_in(words: Iterable[str]) -> frozenset[str]:
    by_word = (_PLACEHOLDER.finditer(word) for word in words)
    return frozenset(match[2] for matches in by_word for match in matches if match[2] is not None)


def require_runnable(user_server: UserServer, port: int | None) -> None:
    """Raise UsageError if the name, a placeholder or the stop signal is invalid, or the port is
    unknown."""
    require_name(user_server.name)
    used = placeholders_of(user_server)
    require(
        "socket" not in used,
        f"{user_server.option}: {{socket}} is not available: servers are measured over TCP",
        "listen on {address} instead",
    )
    _require_known(user_server.option, used, _PLACEHOLDERS)
    for where, command in user_server.hooks:
        _require_known(where, _placeholders_in(split_words(command, where)), _ADDRESS_PLACEHOLDERS)
    _require_signal(user_server)
    require(
        bool(used & _LISTEN_PLACEHOLDERS) or port is not None,
        f"{user_server.option} has neither {{address}} nor {{port}}, so its port is unknown",
        "add one, as in --bind {address}, or pass its fixed port with --port",
    )


def _require_known(where: str, used: Iterable[str], known: Sequence[str]) -> None:
    for name in sorted(set(used) - set(known)):
        cause = f"{where}: unknown placeholder {{{name}}}"
        raise UsageError(cause, _instead_of(name, known))


def _require_signal(user_server: UserServer) -> None:
    require(
        user_server.stop_signal in signal.Signals.__members__,
        f"{user_server.option}: stop_signal {user_server.stop_signal!r} is not a signal",
        "write it like SIGTERM or SIGQUIT",
    )


def _instead_of(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"did you mean {{{close[0]}}}?"
    listed = ", ".join(f"{{{placeholder}}}" for placeholder in known)
    return f"use {listed}, or write {{{{{name}}}}} for the text {{{name}}}"


def server_of(user_server: UserServer) -> Server:
    """The user's server as a catalogue entry."""
    used, stop = placeholders_of(user_server), signal.Signals[user_server.stop_signal]
    variant = Variant(
        name="default",
        summary=user_server.command,
        keepalive=True,  # probed later
        uses_workers="workers" in used,
        uses_threads="threads" in used,
    )
    return Server(
        name=user_server.name,
        summary="your own command",
        homepage="",
        source=user_server.folder,
        requirements=(),
        distribution=None,
        variants=(variant,),
        default_variant=variant.name,
        command=lambda _, context: command_line(user_server, context),
        stop_signal=user_server.stop_signal,
        stop_timeout_s=STOP_TIMEOUT_S,
        clean_exit_codes=(0, -stop, ENDED_BY_SIGNAL + stop),
        user_server=user_server,
    )


def command_line(user_server: UserServer, context: LaunchContext) -> list[str]:
    """The words of the command, with the placeholders filled in."""
    return filled(words_of(user_server), context)


def filled(words: Sequence[str], context: LaunchContext) -> list[str]:
    """The words with the placeholders filled in."""
    values = {
        "host": context.host,
        "port": context.port,
        "address": context.address,
        "workers": context.workers,
        "threads": context.threads,
    }
    return [_filled(word, values) for word in words]


def _filled(word: str, values: Mapping[str, object]) -> str:
    return _PLACEHOLDER.sub(
        lambda match: f"{{{match[1]}}}" if match[2] is None else str(values[match[2]]), word
    )
