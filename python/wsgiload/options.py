"""How options are declared: once, as a field of an options object such as ``LoadOptions``.

The field's declaration says which commands have the option and what its flag, its key in
configuration files and its variable ``WSGILOAD_*`` accept; the docstring of the object says what it
means. ``cli/_declared.py`` makes the flags.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from wsgiload.errors import UsageError
from wsgiload.units import NS_PER_S, parse_duration_ns, parse_margin, parse_size_bytes

# The sections of a help text, in order.
Section = Literal["Load", "Server", "Limits", "Procedure", "Output", "Request"]
Command = Literal["load", "sweep", "capacity"]

_KEY = "wsgiload"


@dataclass(frozen=True, slots=True)
class Text:
    """A value in a notation of its own: how help calls it, how it is parsed, and how a default is
    written."""

    name: str
    parse: Callable[[str], Any]
    write: Callable[[Any], str] = str


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number in a range."""

    low: int
    high: int | None = None


# What an option accepts: a notation, a range, one of several words, a file or folder, or a value of
# a type that click knows.
Kind: TypeAlias = "Text | Whole | tuple[str, ...] | Literal['file', 'folder'] | type"


def _seconds(text: str) -> float:
    return parse_duration_ns(text) / NS_PER_S


def _duration_text(seconds: float) -> str:
    return f"{seconds * 1e3:g}ms" if 0 < seconds < 1 else f"{seconds:g}s"


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise UsageError(f"{text!r} is not NAME=VALUE", "write it like gunicorn=…")
    return name.strip().lower(), value.strip()


DURATION = Text("duration", _seconds, _duration_text)
SIZE = Text("size", parse_size_bytes, lambda size: f"{size // 1024**2}MiB")
MARGIN = Text("margin", parse_margin, lambda share: f"{100 * share:g}%")
ASSIGNMENT = Text("name=value", _assignment)
PORT = Whole(1, 65_535)
SEED = Whole(0, 2**64 - 1)


@dataclass(frozen=True, slots=True)
class Declaration:
    """The flag of an option."""

    section: Section
    kind: Kind
    flags: tuple[str, ...]
    commands: tuple[Command, ...]
    # Those of the commands whose help only names it.
    rare_in: tuple[Command, ...]
    metavar: str | None
    # Only where the flag needs other words than the field.
    help: str | None
    # Whether the flag may be repeated; and what makes the field's value of the flag's.
    is_repeatable: bool
    collect: Callable[[Any], Any]


def option(
    default: Any,
    section: Section,
    kind: Kind = str,
    *flags: str,
    only: tuple[Command, ...] = ("load", "sweep", "capacity"),
    rare_in: tuple[Command, ...] = (),
    metavar: str | None = None,
    help: str | None = None,
    repeatable: bool = False,
    collect: Callable[[Any], Any] = lambda value: value,
) -> Any:
    """A field of an options object. Its flag is named like it, unless ``flags`` are given. The help
    only names what one in a hundred users needs (``rare_in``), so that it can be read to its
    end."""
    made = Declaration(section, kind, flags, only, rare_in, metavar, help, repeatable, collect)
    given = {"default_factory": default} if default in (dict, list) else {"default": default}
    return field(**given, metadata={_KEY: made})


def declaration_of(metadata: Mapping[Any, Any]) -> Declaration | None:
    """The declaration of a field; None if the field has no flag of its own."""
    made: Declaration | None = metadata.get(_KEY)
    return made
