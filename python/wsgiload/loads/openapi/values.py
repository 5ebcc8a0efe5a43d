"""Values for schemas: from the description if it has any, otherwise according to the types."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from wsgiload.loads.openapi.document import (
    ApiDescription,
    Object,
    TooLarge,
    Unfillable,
    items,
    mapping,
    shown,
)

MAX_DEPTH = 32
MAX_ITEMS = 100
MAX_INVENTED_CHARACTERS = 1_000
# Without bounds in the schema: the likely ids in a table of test data.
_FIRST, _NUMBERS = 1, 1_000
# Some servers round larger integers in JSON.
_MAX_SAFE_INTEGER = 2**53
_TEXT = "text"
_UNKNOWN = "its type is not known, and it has no example, default or enum"
_OF_FORMAT = {
    "date": "2024-01-31",
    "date-time": "2024-01-31T12:00:00Z",
    "time": "12:00:00Z",
    "email": "user@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
    "url": "https://example.com/",
    "byte": "dGV4dA==",
}


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A value that differs from request to request."""

    name: str
    is_number: bool

    @property
    def text(self) -> str:
        """The placeholder in a targets file."""
        return f"{{{{{self.name}}}}}"


class _Missing:
    """No value, where None is a value."""


MISSING: Final = _Missing()


def given_value(document: ApiDescription, holder: Object) -> object:
    """The value that a parameter, a body or a schema specifies: an example, the default, the only
    value, or the first of several."""
    for name in ("example", "x-example"):
        if holder.get(name) is not None:
            return holder[name]
    for example in _examples(document, holder.get("examples")):
        if example is not None:
            return example
    for name in ("const", "default"):
        if holder.get(name) is not None:
            return holder[name]
    return next((one for one in items(holder.get("enum")) if one is not None), MISSING)


def _examples(document: ApiDescription, examples: object) -> Iterator[object]:
    """In a schema, examples are an array; elsewhere, they have names."""
    yield from items(examples)
    for example in mapping(examples).values():
        target = document.object_at(example)
        if "value" in target:
            yield target["value"]


@dataclass(frozen=True, slots=True)
class Values:
    """Finds values. Text without any hint is only invented in a body; in a URL, it would name a
    resource that does not exist."""

    document: ApiDescription
    invents_text: bool

    def of(self, schema: object, depth: int = 0) -> object:
        """A value for the schema, including placeholders."""
        if depth > MAX_DEPTH:
            raise Unfillable("its schema is nested too deeply")
        with self.document.inside(schema) as resolved:
            given = given_value(self.document, resolved)
            if given is not MISSING:
                return given
            if "allOf" in resolved:
                return self.of(self._merged(resolved, depth), depth + 1)
            for choices in ("oneOf", "anyOf"):
                if choices in resolved:
                    return self._first(items(resolved[choices]), depth)
            return self._of_type(resolved, depth)

    def _of_type(self, schema: Object, depth: int) -> object:
        kind = _type_of(schema)
        if kind == "integer" or kind == "number":
            return _number(schema, is_whole=kind == "integer")
        if kind == "boolean":
            return True
        if kind == "string":
            return self._text(schema)
        if kind == "array":
            return self._array(schema, depth)
        if kind == "object":
            return self._object(schema, depth)
        raise Unfillable(_UNKNOWN)

    def _merged(self, schema: Object, depth: int) -> Object:
        """The schema with the requirements of all its parts."""
        merged: Object = {name: value for name, value in schema.items() if name != "allOf"}
        properties = dict(mapping(schema.get("properties")))
        required = [*items(schema.get("required"))]
        for part in items(schema["allOf"]):
            with self.document.inside(part) as resolved:
                if depth > MAX_DEPTH:
                    raise Unfillable("its schema is nested too deeply")
                whole = self._merged(resolved, depth + 1) if "allOf" in resolved else resolved
                properties |= mapping(whole.get("properties"))
                required += items(whole.get("required"))
                merged = {**whole, **merged}
        return merged | {"properties": properties, "required": required}

    def _first(self, choices: list[object], depth: int) -> object:
        """A value for the first of the schemas that has one."""
        reasons = []
        for choice in choices:
            try:
                return self.of(choice, depth + 1)
            except TooLarge:
                raise
            except Unfillable as unfillable:
                reasons.append(str(unfillable))
        raise Unfillable(reasons[0] if reasons else _UNKNOWN)

    def _text(self, schema: Object) -> object:
        kind = schema.get("format")
        if kind == "uuid":
            return Placeholder("uuid", is_number=False)
        if isinstance(kind, str) and kind in _OF_FORMAT:
            return _OF_FORMAT[kind]
        if not self.invents_text:
            raise Unfillable("it has no example, default or enum")
        if "pattern" in schema or kind == "binary":
            raise Unfillable("it has a pattern or is binary, and has no example")
        least, most = _length(schema, "minLength", 0), _length(schema, "maxLength", len(_TEXT))
        if least > MAX_INVENTED_CHARACTERS:
            raise Unfillable(f"it is longer than {MAX_INVENTED_CHARACTERS} characters")
        return _TEXT[:most].ljust(least, "x")

    def _array(self, schema: Object, depth: int) -> object:
        count = _length(schema, "minItems", 0)
        if count > MAX_ITEMS:
            raise Unfillable(f"it has more than {MAX_ITEMS} items")
        try:
            return [self.of(schema.get("items", {}), depth + 1)] * max(count, 1)
        except TooLarge:
            raise
        except Unfillable:
            if self.invents_text and count == 0:
                return []
            raise

    def _object(self, schema: Object, depth: int) -> Object:
        """An object with the required properties, and those for which the description gives a
        value."""
        properties, required = mapping(schema.get("properties")), items(schema.get("required"))
        for name in required:
            if not isinstance(name, str) or name not in properties:
                raise Unfillable(f"its property {shown(str(name))} is not described")
        values: Object = {}
        for name, described in properties.items():
            try:
                value = self._property(described, name in required, depth)
            except Unfillable as unfillable:
                raise type(unfillable)(f"its property {shown(name)}: {unfillable}") from None
            if value is not MISSING:
                values[name] = value
        return values

    def _property(self, described: object, is_required: bool, depth: int) -> object:
        self.document.count()
        schema = mapping(described) if not is_required else self.document.object_at(described)
        if schema.get("readOnly") is True:
            return MISSING
        return self.of(described, depth + 1) if is_required else given_value(self.document, schema)


def _type_of(schema: Object) -> object:
    """The type; version 3.1 may list several."""
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), None)
    if kind is None and "properties" in schema:
        return "object"
    if kind is None and "items" in schema:
        return "array"
    return kind


def _number(schema: Object, is_whole: bool) -> object:
    """A random number within the bounds; a fixed one if it must be a multiple or no integer
    fits."""
    low, high = _bounds(schema)
    step = _finite(schema.get("multipleOf"))
    if step is not None and step > 0:
        number = step * math.ceil(low / step)
        if number > high:
            raise Unfillable("no multiple is within its bounds")
        return int(number) if float(number).is_integer() else number

    least, most = math.ceil(low), math.floor(high)
    if least <= most:
        return Placeholder(f"random:{least}:{most}", is_number=True)
    if is_whole:
        raise Unfillable("no whole number is within its bounds")
    if low <= high:
        return (low + high) / 2
    raise Unfillable("no number is within its bounds")


def _bounds(schema: Object) -> tuple[float, float]:
    """The smallest and the largest number; exclusive bounds are narrowed by one, or by less if
    nothing remains."""
    low, high = _finite(schema.get("minimum")), _finite(schema.get("maximum"))
    over, under = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if over is True and low is not None:
        low += 1
    elif (bound := _finite(over)) is not None:
        low = bound + 1 if low is None else max(low, bound + 1)
    if under is True and high is not None:
        high -= 1
    elif (bound := _finite(under)) is not None:
        high = bound - 1 if high is None else min(high, bound - 1)

    if low is None:
        low = _FIRST if high is None or high >= _FIRST else high - _NUMBERS + 1
    return low, low + _NUMBERS - 1 if high is None else high


def _finite(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) <= _MAX_SAFE_INTEGER else None


def _length(schema: Object, name: str, default: int) -> int:
    value = schema.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        return default
    return value
