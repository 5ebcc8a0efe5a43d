"""Writing results: JSON to a file or standard output, and the sentences that go to standard error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from wsgiload.errors import UsageError


def write_json(data: Any, destination: str) -> None:
    """To standard output for ``-``, else to the file."""
    text = json.dumps(data, indent=1)
    if destination == "-":
        click.echo(text)
        return
    try:
        Path(destination).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {destination}: {error.strerror}") from error


def check_destinations(json_file: str | None, *others: Path | None) -> None:
    """Refuse, before anything is measured, a place where the result could not be written."""
    if json_file is not None and json_file != "-":
        if ":" in json_file or not {".", "/"} & set(json_file):
            raise UsageError(
                f"--json took {json_file!r} for the name of a file", "write --json=-, --json=FILE.json, or put it last"
            )
        others = (*others, Path(json_file))
    for path in others:
        if path is not None and not path.absolute().parent.is_dir():
            raise UsageError(f"there is no folder {path.absolute().parent}", "make it, or choose another")


def complain(text: str) -> None:
    """One line on standard error."""
    click.echo(f"wsgiload: {text}", err=True)
