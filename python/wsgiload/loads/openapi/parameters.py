"""The required parameters of an operation in its path, query, header fields and cookies, and values
as text. Braces are escaped, except in placeholders."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import quote

import msgspec

from wsgiload.loads.openapi.document import (
    ApiDescription,
    Object,
    Unfillable,
    excerpt,
    items,
    mapping,
    text_or,
)
from wsgiload.loads.openapi.values import MISSING, Placeholder, Values, specified_value
from wsgiload.loads.targets_text import escaped, url_text

_IN_PATH = re.compile(r"\{([^{}]+)\}")
# Version 3 describes these elsewhere (OpenAPI 3.1, section "Parameter Object").
_DESCRIBED_ELSEWHERE = frozenset(("accept", "content-type", "authorization"))
_SEPARATORS = {
    "form": ",",
    "spaceDelimited": "%20",
    "pipeDelimited": "%7C",
    "csv": ",",
    "ssv": "%20",
    "tsv": "%09",
    "pipes": "%7C",
}
_ONE_EACH = "multi"


@dataclass(slots=True)
class Filled:
    """The parameters of a request."""

    in_path: dict[str, str] = field(default_factory=dict)
    query: list[str] = field(default_factory=list)
    fields: list[tuple[str, str]] = field(default_factory=list)
    cookies: list[str] = field(default_factory=list)

    def path(self, template: str) -> str:
        """The path of the operation with its query."""

        def part(match: re.Match[str]) -> str:
            if match[1] not in self.in_path:
                raise Unfillable(f"path parameter {excerpt(match[1])} is not described")
            return self.in_path[match[1]]

        pieces, position = [], 0
        for match in _IN_PATH.finditer(template):
            pieces += [_path_text(template[position : match.start()]), part(match)]
            position = match.end()
        path = "".join([*pieces, _path_text(template[position:])])
        return f"{path}?{'&'.join(self.query)}" if self.query else path


def parameters_of(document: ApiDescription, *levels: Object) -> list[Object]:
    """The parameters of the path and of the operation; the latter take precedence."""
    by_name: dict[tuple[object, object], Object] = {}
    for level in levels:
        for one in items(level.get("parameters")):
            parameter = document.object_at(one)
            by_name[str(parameter.get("name")), str(parameter.get("in"))] = parameter
    return list(by_name.values())


def fill(document: ApiDescription, parameters: list[Object]) -> Filled:
    """The required parameters with their values."""
    result = Filled()
    for parameter in parameters:
        place, name = text_or(parameter.get("in"), ""), text_or(parameter.get("name"), "")
        if parameter.get("required") is not True and place != "path":
            continue
        try:
            _fill(document, parameter, (place, name), result)
        except Unfillable as unfillable:
            raise Unfillable(f"{excerpt(place)} parameter {excerpt(name)}: {unfillable}") from None
    if result.cookies:
        result.fields.append(("Cookie", "; ".join(result.cookies)))
    return result


def _fill(
    document: ApiDescription, parameter: Object, key: tuple[str, str], result: Filled
) -> None:
    place, name = key
    if place == "path":
        result.in_path[name] = _in_path(parameter, _value(document, parameter))
    elif place == "query":
        result.query += _in_query(parameter, name, _value(document, parameter))
    elif place == "header" and name.lower() not in _DESCRIBED_ELSEWHERE:
        result.fields.append((name, _joined(_value(document, parameter))))
    elif place == "cookie":
        result.cookies.append(f"{name}={_joined(_value(document, parameter))}")


def _value(document: ApiDescription, parameter: Object) -> object:
    specified = specified_value(document, parameter)
    if specified is not MISSING:
        return specified
    for medium in mapping(parameter.get("content")).values():
        specified = specified_value(document, document.object_at(medium))
        if specified is MISSING:
            raise Unfillable("its content has no example")
        return json_value(specified)
    return Values(document, invents_text=False).of(parameter.get("schema", parameter))


def _in_path(parameter: Object, value: object) -> str:
    style = parameter.get("style", "simple")
    if style != "simple":
        raise Unfillable(f"style {excerpt(str(style))} is not supported")
    text = joined_part(value, ",")
    if not text:
        raise Unfillable("its value is empty")
    return text


def _in_query(parameter: Object, name: str, value: object) -> list[str]:
    written = quote(name, safe="")
    style = text_or(parameter.get("style", parameter.get("collectionFormat")), "")
    is_version_2 = "schema" not in parameter and "content" not in parameter
    style = style or ("csv" if is_version_2 else "form")
    one_each = style == _ONE_EACH or (style == "form" and parameter.get("explode") is not False)
    if isinstance(value, dict):
        if style == "deepObject":
            return [f"{written}%5B{quote(key, safe='')}%5D={url_part(value[key])}" for key in value]
        if one_each:
            return [f"{quote(key, safe='')}={url_part(value[key])}" for key in value]
        raise Unfillable("an object in a query is only supported in the styles form and deepObject")
    if isinstance(value, list) and one_each:
        return [f"{written}={url_part(one)}" for one in value]
    if style not in _SEPARATORS:
        raise Unfillable(f"style {excerpt(style)} is not supported")
    return [f"{written}={joined_part(value, _SEPARATORS[style])}"]


def _joined(value: object) -> str:
    return ",".join(map(plain_text, value)) if isinstance(value, list) else plain_text(value)


def _path_text(text: str) -> str:
    """A part of a path outside of parameters, whose braces must not form a placeholder."""
    return url_text(text).replace("{", "%7B").replace("}", "%7D")


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
