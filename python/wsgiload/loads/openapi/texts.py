"""Encodes values for requests. Braces are escaped, except in placeholders."""

from __future__ import annotations

from urllib.parse import quote

import msgspec

from wsgiload.loads.openapi.document import Unfillable
from wsgiload.loads.openapi.values import Placeholder
from wsgiload.loads.targets_text import escaped

MAX_DEPTH = 64
MAX_BODY_CHARACTERS = 1 << 20


def plain_text(value: object) -> str:
    """A scalar in a header field or a text body."""
    return value.text if isinstance(value, Placeholder) else escaped(_written(value))


def url_part(value: object) -> str:
    """A scalar in a path, a query or a form."""
    if isinstance(value, Placeholder):
        return value.text
    return quote(_written(value), safe="", errors="surrogateescape")


def joined_part(value: object, separator: str) -> str:
    """A scalar, or the scalars of an array between separators."""
    return separator.join(map(url_part, value)) if isinstance(value, list) else url_part(value)


def form_text(value: object) -> str:
    """An object in the encoding of an HTML form."""
    if not isinstance(value, dict):
        raise Unfillable("a form must be an object")
    pairs = [
        f"{quote(name, safe='')}={url_part(one)}"
        for name, field in value.items()
        for one in (field if isinstance(field, list) else [field])
    ]
    text = "&".join(pairs)
    if len(text) > MAX_BODY_CHARACTERS:
        raise _too_long()
    return text


def json_text(value: object) -> str:
    """JSON in which numeric placeholders have no quotes."""
    writer = _JsonWriter()
    writer.write(value, 0)
    return "".join(writer.pieces)


def json_value(value: object) -> str:
    """JSON as the value of a parameter, whose braces are escaped later."""
    return json_text(value).replace("{{{{", "{{")


class _JsonWriter:
    """Writes JSON of limited length: repeated items can expand a small value to a long text."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self._room = MAX_BODY_CHARACTERS

    def write(self, value: object, depth: int) -> None:
        """Append the value's text."""
        if depth > MAX_DEPTH:
            raise Unfillable("its example is nested too deeply")
        if isinstance(value, dict):
            members = [(f"{_json(str(name))}:", one) for name, one in value.items()]
            self._write_members("{", members, "}", depth)
        elif isinstance(value, list):
            self._write_members("[", [("", one) for one in value], "]", depth)
        else:
            self._append(_leaf(value))

    def _write_members(
        self, opening: str, members: list[tuple[str, object]], closing: str, depth: int
    ) -> None:
        self._append(opening)
        for index, (name, value) in enumerate(members):
            self._append(f",{name}" if index else name)
            self.write(value, depth + 1)
        self._append(closing)

    def _append(self, piece: str) -> None:
        self._room -= len(piece) + 1
        if self._room < 0:
            raise _too_long()
        self.pieces.append(piece)


def _leaf(value: object) -> str:
    if isinstance(value, Placeholder):
        return value.text if value.is_number else f'"{value.text}"'
    return _json(value)


def _json(value: object) -> str:
    return escaped(msgspec.json.encode(value).decode())


def _written(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise Unfillable("its value is not a string or a number")


def _too_long() -> Unfillable:
    return Unfillable("its value is longer than 1 MiB")
