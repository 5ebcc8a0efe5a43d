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


def complain(text: str) -> None:
    """One line on standard error."""
    click.echo(f"wsgiload: {text}", err=True)
