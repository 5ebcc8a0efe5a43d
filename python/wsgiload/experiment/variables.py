"""The user's environment variables for servers. Only reads files.

Secrets are never stored; a resumed run takes them from its environment.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

from wsgiload.errors import UsageError
from wsgiload.experiment.redaction import holds_redacted, public_value
from wsgiload.foreign_files import VARIABLES, read_file

_NAME = re.compile(r"[A-Za-z_]\w*")


def parse_variable(text: str, where: str | None = None) -> tuple[str, str]:
    """Parse ``NAME=VALUE``. If ``where`` names a line of a file, the error does not quote it,
    because it may contain a secret."""
    name, equals, value = text.partition("=")
    if not equals or not _NAME.fullmatch(name):
        given = f"--env: {text!r}" if where is None else where
        raise UsageError(f"{given} is not NAME=VALUE", "write it like DEBUG=0")
    return name, value


def read_variables(path: Path) -> dict[str, str]:
    """Read a file with one ``NAME=VALUE`` per line. Quotes and comments are as in a shell,
    ``export`` may precede a name, and nothing is expanded."""
    try:
        text = read_file(VARIABLES, path).decode("utf-8-sig")
    except FileNotFoundError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeError:
        raise UsageError(f"{path} is not UTF-8") from None

    variables = {}
    for number, line in enumerate(text.splitlines(), start=1):
        where = f"{path}:{number}"
        stripped = line.strip().removeprefix("export ").lstrip()
        if stripped and not stripped.startswith("#"):
            name, value = parse_variable(stripped, where)
            variables[name] = _unquoted(value.strip(), where)
    return variables


def _unquoted(value: str, where: str) -> str:
    if not value.startswith(("'", '"')):
        return value.partition(" #")[0].rstrip()
    try:
        words = shlex.split(value, comments=True)
    except ValueError as error:
        raise UsageError(f"{where}: {error}", "check its quotation marks") from None
    return "".join(words[:1])


def variables_of(given: Mapping[str, str], files: Iterable[Path]) -> dict[str, str]:
    """The variables of the files, then the given ones. Later values override earlier ones."""
    variables: dict[str, str] = {}
    for path in files:
        variables |= read_variables(path)
    return variables | dict(given)


def without_secrets(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables in the order of their names, with secrets replaced by hashes."""
    return {name: public_value(name, value) for name, value in sorted(variables.items())}


def with_secrets(stored: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """The stored variables with their secrets from the given variables, or else from this process's
    environment."""
    for name, value in given.items():
        if public_value(name, value) != stored.get(name):
            raise differs(name)
    return {name: _secret(name, value, given) for name, value in stored.items()}


def _secret(name: str, stored: str, given: Mapping[str, str]) -> str:
    if not holds_redacted(stored):
        return stored
    value = given.get(name, os.environ.get(name))
    if value is None:
        raise UsageError(
            f"--resume: the value of {name} was not stored, because it may be a secret",
            f"set it again: {name}=… wsgiload sweep --resume …",
        )
    if public_value(name, value) != stored:
        raise differs(name)
    return value


def differs(what: str) -> UsageError:
    """The error for a value that a resumed run gets and that is not the run's."""
    return UsageError(
        f"--resume: the value of {what} differs from that of the run",
        "use the same value as at the start",
    )
