"""``wsgiload import``: converts recorded requests and API descriptions to targets files."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from wsgiload.cli._declared import FILE
from wsgiload.cli._help import HelpfulCommand, option
from wsgiload.cli._output import check_destinations, complain, print_exact
from wsgiload.errors import UsageError
from wsgiload.foreign_files import (
    BODY,
    HAR,
    MIB,
    OPENAPI,
    STANDARD_INPUT,
    FileKind,
    plain_input,
    read_file,
    write_named,
)
from wsgiload.loads.curl import targets_of_curl
from wsgiload.loads.har import targets_of_har
from wsgiload.loads.openapi import SAFE_METHODS, targets_of_openapi
from wsgiload.loads.openapi.operations import METHODS
from wsgiload.loads.recording import targets_of_access_log
from wsgiload.loads.targets_text import ImportedTargets

_LOAD = "wsgiload load http://127.0.0.1:8000/ -R 50 --targets shop.targets"
_HAR_EXAMPLES = ("wsgiload import har shop.har -o shop.targets", _LOAD)
_CURL_EXAMPLES = (
    "wsgiload import curl \"curl 'http://127.0.0.1:8000/cart' -H 'Accept: */*'\" -o shop.targets",
    "wsgiload import curl -o shop.targets curl 'http://127.0.0.1:8000/cart' -H 'Accept: */*'",
    _LOAD,
)
_ACCESS_LOG_EXAMPLES = ("wsgiload import access-log access.log -o shop.targets", _LOAD)
_OPENAPI_EXAMPLES = ("wsgiload import openapi openapi.json -o shop.targets", _LOAD)

_COMMANDS = FileKind("curl commands", 4 * MIB)
_TO_JSON = (
    "uv run --no-project --with pyyaml python -c 'import json, sys, yaml; "
    "json.dump(yaml.safe_load(sys.stdin), sys.stdout, default=str)'"
)

_out = option(
    "Output",
    "-o",
    "--out",
    "out",
    type=FILE,
    help="Write the targets to this file instead of standard output.",
)


class _PastedCommand(HelpfulCommand):
    """Also accepts a pasted command as separate words from ``curl`` on, from which the shell has
    removed the quotes."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Join the pasted command into one argument."""
        if "curl" in args:
            start = args.index("curl")
            args = [*args[:start], shlex.join(args[start:])]
        return super().parse_args(ctx, args)


@click.group("import", context_settings={"help_option_names": ["-h", "--help"]})
def import_group() -> None:
    """Create a targets file (weighted requests for `--targets`) from recorded requests or an API
    description."""


@import_group.command(cls=HelpfulCommand, examples=_HAR_EXAMPLES, short_help="Convert a HAR file.")
@click.argument("file", type=FILE)
@_out
def har(file: Path, out: Path | None) -> None:
    """Convert a browser's HAR file to a targets file."""
    check_destinations(None, out)
    content = _read(file, HAR)
    with _naming(file):
        imported = targets_of_har(content)
    _write(imported, out)


@import_group.command(
    cls=_PastedCommand, examples=_CURL_EXAMPLES, short_help="Convert curl commands."
)
@click.argument("command", nargs=-1, required=True)
@_out
def curl(command: tuple[str, ...], out: Path | None) -> None:
    """Convert curl commands to a targets file.

    COMMAND is one quoted argument with curl commands, one unquoted curl command after the options,
    or - for standard input.
    """
    if len(command) > 1:
        raise UsageError(
            f"one argument expected, not {len(command)}",
            "paste the command after the options: wsgiload import curl -o FILE curl …",
        )
    (text,) = command
    check_destinations(None, out)
    if text == STANDARD_INPUT:
        text = _read(Path(text), _COMMANDS).decode(errors="surrogateescape")
    _write(targets_of_curl(text, _read_body), out)


@import_group.command(
    "access-log",
    cls=HelpfulCommand,
    examples=_ACCESS_LOG_EXAMPLES,
    short_help="Convert an access log.",
)
@click.argument("file", type=FILE)
@_out
def access_log(file: Path, out: Path | None) -> None:
    """Convert an access log to a targets file.

    To keep the recorded arrival times, use `wsgiload load --replay FILE` instead.
    """
    check_destinations(None, out)
    _write(targets_of_access_log(file), out)


@import_group.command(
    cls=HelpfulCommand,
    examples=_OPENAPI_EXAMPLES,
    short_help="Convert an OpenAPI description.",
)
@click.argument("file", type=FILE)
@option(
    "Request",
    "--method",
    "methods",
    type=click.Choice([name for name in METHODS if name not in SAFE_METHODS], case_sensitive=False),
    multiple=True,
    help="Also import operations with this method (repeatable). These operations may change data.  [default: GET and HEAD only]",
)
@_out
def openapi(file: Path, methods: tuple[str, ...], out: Path | None) -> None:
    """Convert an OpenAPI description to a targets file.

    FILE is an OpenAPI 2.0, 3.0 or 3.1 description in JSON.
    """
    check_destinations(None, out)
    content = _read(file, OPENAPI)
    with _naming(file):
        _require_json(file, content)
        imported = targets_of_openapi(content, methods)
    _write(imported, out)


@contextmanager
def _naming(file: Path) -> Iterator[None]:
    """Prefix errors with the name of the file."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{_shown(file)}: {error}") from error


def _require_json(file: Path, content: bytes) -> None:
    if content.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
        return
    name = "api.yaml" if str(file) == STANDARD_INPUT else str(file)
    files = f"<{shlex.quote(name)} >{shlex.quote(name + '.json')}"
    raise UsageError("not JSON", f"convert YAML with: {_TO_JSON} {files}")


def _read_body(name: str) -> bytes:
    """Read a body file that a curl command names."""
    if name == STANDARD_INPUT:
        raise UsageError("the curl command reads standard input", "name a file instead")
    try:
        return read_file(BODY, Path(name))
    except FileNotFoundError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}") from error


def _read(file: Path, kind: FileKind) -> bytes:
    """The content of a file or of standard input, also if gzip packed it."""
    try:
        with plain_input(kind, file) as (source, is_cut):
            content = source.read()
    except FileNotFoundError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
    if is_cut:
        raise UsageError(f"the end of {_shown(file)} is missing", "pack or copy it again")
    return content


def _shown(file: Path) -> str:
    return "standard input" if str(file) == STANDARD_INPUT else str(file)


def _write(imported: ImportedTargets, out: Path | None) -> None:
    """Write the targets to ``out`` or standard output, and the notes to standard error."""
    if out is None:
        print_exact(imported.text)
    else:
        try:
            write_named(out, imported.text.encode())
        except OSError as error:
            raise UsageError(f"cannot write {out}: {error.strerror}") from error
    for note in imported.notes:
        complain(note)
