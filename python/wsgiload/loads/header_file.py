"""Parses header fields from the command line or from files. Messages never quote the content of a
file, because it may be a secret."""

from __future__ import annotations

from pathlib import Path

from wsgiload.errors import UsageError
from wsgiload.foreign_files import HEADERS, read_file
from wsgiload.loads.request import is_field_value, parse_header


def parse_headers(text: str) -> tuple[tuple[str, str], ...]:
    """Parse ``Name: value``, or ``@FILE`` with one header field per line."""
    if not text.startswith("@"):
        return (parse_header(text),)
    if text == "@":
        raise UsageError("-H @ is not followed by a file name", "write -H ")
    path = _path_of(text[1:])
    lines = enumerate(_text_of(path).split("\n"), start=1)
    written = [(number, line.strip()) for number, line in lines]
    fields = tuple(
        _field(line, f"{path}:{number}")
        for number, line in written
        if line and not line.startswith("#")
    )
    if not fields:
        raise UsageError(f"{path} has no header fields", "write one 'Name: value' on each line")
    return fields


def _path_of(name: str) -> Path:
    """The path with a leading tilde expanded, which shells do not do after ``@``."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)


def _text_of(path: Path) -> str:
    try:
        return read_file(HEADERS, path).decode("utf-8-sig")
    except FileNotFoundError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeError:
        raise UsageError(f"{path} is not UTF-8", "use ASCII") from None


def _field(line: str, where: str) -> tuple[str, str]:
    try:
        name, value = parse_header(line)
    except UsageError:
        raise UsageError(f"{where} is not a header field", "write it as 'Name: value'") from None
    if not is_field_value(value):
        raise UsageError(f"{where}: {name} has characters that HTTP forbids", "use ASCII")
    return name, value
