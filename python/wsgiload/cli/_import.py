"""``wsgiload import``: recorded traffic as files that a load reads."""

from __future__ import annotations

from pathlib import Path

import click

from wsgiload.cli._help import HelpfulCommand, option
from wsgiload.cli._options import FILE
from wsgiload.cli._output import check_destinations, complain
from wsgiload.errors import UsageError
from wsgiload.loads.har import targets_of_har

EXAMPLES = (
    "wsgiload import har shop.har -o shop.targets",
    "wsgiload load http://127.0.0.1:8000/ -R 50 --targets shop.targets",
)


@click.group("import", context_settings={"help_option_names": ["-h", "--help"]})
def import_group() -> None:
    """Convert recorded traffic to a targets file.

    Access logs need no conversion: see load --replay.
    """


@import_group.command(cls=HelpfulCommand, examples=EXAMPLES)
@click.argument("file", type=FILE)
@option(
    "Output", "-o", "--out", "out", type=FILE, help="Write to this file instead of standard output."
)
def har(file: Path, out: Path | None) -> None:
    """Convert a HAR file, as saved by a browser, to a targets file."""
    check_destinations(None, out)
    try:
        imported = targets_of_har(file.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
    except UsageError as error:
        raise UsageError(f"{file}: {error}") from error

    _write(imported.text, out)
    for note in imported.notes:
        complain(note)


def _write(text: str, out: Path | None) -> None:
    if out is None:
        click.echo(text, nl=False)
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {out}: {error.strerror}") from error
