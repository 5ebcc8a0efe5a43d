"""Writing results: JSON to a file or standard output, and the sentences that go to standard
error."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TextIO

import click
import msgspec

from wsgiload.errors import UsageError
from wsgiload.foreign_text import visible, visible_json

# ``http://…`` and ``host:8000/…``, but not the time of day in the name of a file.
_URL = re.compile(r"://|^[^/]+:\d+(/|$)")


def write_json(data: object, destination: str) -> None:
    """To standard output for ``-``, else to the file."""
    from wsgiload.documents.codec import encode_bytes  # not for every start of a command

    text = msgspec.json.format(encode_bytes(data, enc_hook=str), indent=1).decode()
    text = visible_json(text)
    if destination == "-":
        _print(text)
        return
    try:
        Path(destination).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {destination}: {error.strerror}") from error


def check_destinations(json_file: str | None, *others: Path | None) -> None:
    """Refuse, before anything is measured, a place where the result could not be written."""
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
    """A line of the result on standard output, or aside on standard error."""
    if aside:
        tell(text)
    else:
        _print(visible(text))


def _print(text: str) -> None:
    """A result on standard output; that nobody reads on changes no exit code."""
    try:
        click.echo(text)
    except BrokenPipeError:
        write_no_more()


def tell(text: str, *, is_whole: bool = True) -> None:
    """A line on standard error, or its beginning; that nobody reads it is no reason to end."""
    try:
        click.echo(visible(text), err=True, nl=is_whole)
    except OSError:
        sys.stderr = _nobody()


def write_no_more() -> None:
    """Nobody reads standard output any more."""
    sys.stdout = _nobody()


def _nobody() -> TextIO:
    """In place of a stream that failed: what it holds would be tried again at the very end, and
    fail there."""
    return Path(os.devnull).open("w", encoding="utf-8")


def complain(text: str) -> None:
    """One line on standard error, by name."""
    tell(f"wsgiload: {text}")
