"""Writes results to files and standard output, and messages to standard error."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TextIO

import click
import msgspec

from wsgiload.errors import UsageError
from wsgiload.foreign_files import write_named
from wsgiload.foreign_text import visible, visible_json

# Matches ``http://…`` and ``host:8000/…``, but not a time of day in a file name.
_URL = re.compile(r"://|^[^/]+:\d+(/|$)")


def write_json(data: object, destination: str) -> None:
    """Write JSON to a file, or to standard output if the destination is ``-``."""
    from wsgiload.documents.codec import encode_bytes  # slow; not every command needs it

    text = msgspec.json.format(encode_bytes(data, enc_hook=str), indent=1).decode()
    text = visible_json(text)
    if destination == "-":
        print_exact(text + "\n")
        return
    try:
        write_named(Path(destination), f"{text}\n".encode())
    except OSError as error:
        raise UsageError(f"cannot write {destination}: {error.strerror}") from error


def check_destinations(json_file: str | None, *others: Path | None) -> None:
    """Raise UsageError, before anything is measured, if a result could not be written."""
    if json_file is not None and json_file != "-":
        if _URL.search(json_file) or not {".", "/"} & set(json_file):
            raise UsageError(
                f"--json {json_file} would write a file named {json_file!r}",
                "write --json=- or --json=FILE.json, or put --json last",
            )
        if json_file.endswith("/"):
            raise UsageError(f"cannot write {json_file}: it is a directory", "name a file")
        others = (*others, Path(json_file))

    for path in others:
        if path is not None and path.is_dir():
            raise UsageError(f"cannot write {path}: it is a directory", "name a file")
        if path is not None and not path.absolute().parent.is_dir():
            raise UsageError(
                f"directory {path.absolute().parent} does not exist", "create it, or choose another"
            )


def say(text: str, *, aside: bool = False) -> None:
    """Print a line of the result to standard output, or ``aside`` to standard error."""
    if aside:
        print_status(text)
    else:
        _print(visible(text))


def print_exact(text: str) -> None:
    """Print data for other programs to standard output, as UTF-8 in every locale."""
    _print(text.encode(errors="backslashreplace"), is_whole=False)


def _print(text: str | bytes, *, is_whole: bool = True) -> None:
    """Print to standard output. A closed pipe does not change the exit code."""
    try:
        click.echo(text, nl=is_whole)
    except BrokenPipeError:
        discard_stdout()


def print_status(text: str, *, is_whole: bool = True) -> None:
    """Print a line, or its beginning, to standard error, and ignore that it may be closed."""
    try:
        click.echo(visible(text), err=True, nl=is_whole)
    except OSError:
        sys.stderr = _null_stream()


def discard_stdout() -> None:
    """Discard all further standard output."""
    sys.stdout = _null_stream()


def _null_stream() -> TextIO:
    """A replacement for a failed stream, whose buffer Python would flush at exit and fail again."""
    return Path(os.devnull).open("w", encoding="utf-8")


def complain(text: str) -> None:
    """Print a warning or an error to standard error, prefixed with the program's name."""
    print_status(f"wsgiload: {text}")
