"""The command that starts a server as it was measured, for pasting into a shell. Pure."""

from __future__ import annotations

import re
import shlex
from itertools import pairwise
from pathlib import PurePosixPath

from wsgiload.documents.summary import ServerSettings

# Where a pasted server listens.
PORT = "8000"

_ADDRESS = re.compile(r"(?:127\.0\.0\.1|localhost|0\.0\.0\.0):(\d+)")
_PORT_OPTION = re.compile(r"^--?[a-z-]*port$")


def to_paste(settings: ServerSettings) -> str:
    """The command with its variables, without the paths of our environments, at port 8000; a
    command of the user's as it was given."""
    port = _port(settings.command)
    words = [_renumbered(word, port) for word in settings.command]
    if settings.own_command is None:
        words[0] = _program(words[0])
    variables = [f"{name}={value}" for name, value in sorted(settings.environment.items())]
    return shlex.join([*(["env", *variables] if variables else []), *words])


def _program(word: str) -> str:
    """A program of an environment by its name; whatever is not in a ``bin`` folder as it is."""
    path = PurePosixPath(word)
    return path.name if path.is_absolute() and path.parent.name == "bin" else word


def _port(command: tuple[str, ...]) -> str | None:
    for word in command:
        found = _ADDRESS.search(word)
        if found is not None:
            return found.group(1)
    for option, value in pairwise(command):
        if _PORT_OPTION.match(option) and value.isdigit():
            return value
    return None


def _renumbered(word: str, port: str | None) -> str:
    """The word with the port replaced, where it stands as a number of its own."""
    if port is None:
        return word
    return re.sub(rf"(?<!\d){port}(?!\d)", PORT, word)
