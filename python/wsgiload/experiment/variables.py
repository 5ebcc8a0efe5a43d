"""The user's environment variables for servers. Only reads files.

Secrets are never stored; a resumed run takes them from its environment.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from wsgiload.errors import UsageError
from wsgiload.experiment.redaction import holds_redacted, public_value
from wsgiload.foreign_files import VARIABLES, read_file

if TYPE_CHECKING:
    from dotenv.parser import Binding

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
    """Read a file of ``NAME=VALUE`` bindings as python-dotenv and Docker Compose do: values in
    quotes may have several lines, ``export`` may precede a name, and ``${NAME}`` is replaced."""
    try:
        text = read_file(VARIABLES, path).decode("utf-8-sig")
    except FileNotFoundError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeError:
        raise UsageError(f"{path} is not UTF-8") from None

    # Imported here: few commands read such a file, and the import takes 15 ms.
    from dotenv import dotenv_values
    from dotenv.parser import parse_stream

    for binding in parse_stream(io.StringIO(text)):
        is_comment = binding.key is None and not binding.error
        if not is_comment and (binding.error or binding.value is None or not _is_name(binding)):
            where = f"{path}:{_first_line(binding)}"
            raise UsageError(
                f"{where} is not NAME=VALUE", "write it like DEBUG=0, and close quotes"
            )
    variables = dotenv_values(stream=io.StringIO(text))
    return {name: value or "" for name, value in variables.items()}


def _is_name(binding: Binding) -> bool:
    return binding.key is not None and _NAME.fullmatch(binding.key) is not None


def _first_line(binding: Binding) -> int:
    """The binding begins after the empty lines before it."""
    text = binding.original.string
    return binding.original.line + text[: len(text) - len(text.lstrip())].count("\n")


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
