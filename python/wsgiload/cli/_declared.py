"""Makes the flags of declared options (``wsgiload.options``), and the options objects of their
values. Help shows the docstrings of the options objects, as editors do."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import Field, fields
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import click

from wsgiload import options
from wsgiload.cli._completion import complete_bundled_apps
from wsgiload.cli._help import Option, Parsed, Port, WholeNumber, option, together
from wsgiload.options import PORT, Command, Declaration, Kind, Text, Whole, declaration_of

T = TypeVar("T")

FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)


def click_type(kind: Kind) -> Any:
    """The type of click that accepts this kind of value."""
    if isinstance(kind, Text):
        return Parsed(kind.name, kind.parse)
    if isinstance(kind, Whole):
        return (Port if kind == PORT else WholeNumber)(kind.low, kind.high)
    if isinstance(kind, tuple):
        return click.Choice(kind)
    return {"file": FILE, "folder": FOLDER}.get(kind, kind)  # type: ignore[arg-type]


DURATION = click_type(options.DURATION)
_COMPLETIONS = {"app_name": complete_bundled_apps}


def declared_options(
    defaults: object, command: Command, words: Mapping[str, str] | None = None
) -> Option[Any]:
    """The flags that this command has of an options object, which holds their defaults; ``words``
    are those that help shows instead of a docstring's."""
    given = words or {}
    flags = [
        _flag(
            field,
            made,
            getattr(defaults, field.name),
            made.help or described(type(defaults), field.name, given.get(field.name)),
            is_hidden=command in made.rare_in,
        )
        for field in fields(defaults)  # type: ignore[arg-type]
        if (made := declaration_of(field.metadata)) and command in made.commands
    ]
    return together(*flags)


def _flag(
    field: Field[Any], made: Declaration, default: Any, text: str, *, is_hidden: bool
) -> Option[Any]:
    attributes: dict[str, Any] = {
        "hidden": is_hidden,
        "metavar": made.metavar,
        "shell_complete": _COMPLETIONS.get(field.name),
    }
    if made.kind is bool:
        attributes["is_flag"] = True
    else:
        attributes["type"] = click_type(made.kind)
    if made.is_repeatable:
        attributes["multiple"] = True
    elif made.kind is not bool and default not in (None, ()):
        attributes["default"] = made.kind.write(default) if isinstance(made.kind, Text) else default
        attributes["show_default"] = "[default: " not in text
    flags = made.flags or (f"--{field.name.replace('_', '-')}",)
    return option(made.section, *flags, help=text, **attributes)


def given_options(kind: type[T], flags: Mapping[str, Any], **others: Any) -> T:
    """The options object of a command's flags. ``others`` are the fields without a flag of their
    own."""
    values = {}
    for field in fields(kind):  # type: ignore[arg-type]
        made = declaration_of(field.metadata)
        value = None if made is None else flags.get(_parameter(field.name, made))
        if made is not None and value is not None:
            values[field.name] = made.collect(value)
    return kind(**{**values, **others})


def _parameter(field: str, made: Declaration) -> str:
    """The name that click gives a flag's value: that of the first long flag, unless there is one
    without dashes."""
    plain = [flag for flag in made.flags if not flag.startswith("-")]
    long = [flag for flag in made.flags if flag.startswith("--")]
    return next(iter([*plain, *long]), field).lstrip("-").replace("-", "_")


_FIELD = re.compile(r"^ {4}(\w+): (.*)$")
_DEFAULT = re.compile(r"\s*Default: (.*)\.$")


@cache
def descriptions(kind: type) -> dict[str, str]:
    """The descriptions in the ``Args`` section of a docstring, by field; none without docstrings
    (``python -OO``)."""
    _, _, section = (inspect.getdoc(kind) or "").partition("Args:\n")
    fields: dict[str, str] = {}
    name = ""
    for line in section.splitlines():
        start = _FIELD.match(line)
        if start:
            name = start[1]
            fields[name] = start[2]
        elif line.startswith("        "):
            fields[name] += f" {line.strip()}"
        else:
            break
    return fields


def described(kind: type, field: str, default: str | None = None) -> str:
    """The help text of a field's option. A default in words is formatted like click's defaults;
    ``default`` replaces it."""
    text = descriptions(kind).get(field, "")
    return _DEFAULT.sub(lambda found: f"  [default: {default or found[1]}]", text)
