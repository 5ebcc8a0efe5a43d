"""An API description as untrusted JSON: its references, and bounds on what following them costs.
Nothing outside of the file is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import unquote

import msgspec

from wsgiload.errors import UsageError

Object = dict[str, object]

# Followed for one value; a chain that is longer goes in a circle.
MOST_REFERENCES = 32
# Visited in one file: a few nested schemas can stand for more values than fit into any memory.
MOST_NODES = 1_000_000
_BUNDLE = "bundle it into one file first: npx @redocly/cli bundle FILE -o bundled.json"
MOST_SHOWN_CHARACTERS = 80


class Unfillable(Exception):
    """A part of a request that the description gives no value for, with the reason."""


class TooLarge(Unfillable):
    """Nothing more of the file is looked at."""


@dataclass(slots=True)
class Document:
    """The description, its version 2 (Swagger 2.0) or 3 (OpenAPI 3.0 and 3.1)."""

    root: Object
    version: int
    _nodes: int = field(default=0, init=False)
    _open: list[str] = field(default_factory=list, init=False)

    def object_at(self, value: object) -> Object:
        """The object that this is or refers to; an empty one in place of anything else."""
        for _ in range(MOST_REFERENCES):
            target = mapping(value)
            reference = target.get("$ref")
            if not isinstance(reference, str):
                return target
            value = self._referred(reference)
        raise Unfillable("its references go in a circle")

    @contextmanager
    def inside(self, value: object) -> Iterator[Object]:
        """The same, and a reference to it from within is refused meanwhile."""
        self.count()
        reference = str(mapping(value).get("$ref", ""))
        if reference and reference in self._open:
            raise Unfillable("its schema contains itself")
        self._open.append(reference)
        try:
            yield self.object_at(value)
        finally:
            self._open.pop()

    def count(self) -> None:
        """One more node was visited."""
        self._nodes += 1
        if self._nodes > MOST_NODES:
            raise TooLarge("the schemas of the file are too large")

    def _referred(self, reference: str) -> object:
        if not reference.startswith("#"):
            raise Unfillable(f"it refers to {shown(reference)}, outside of the file; {_BUNDLE}")
        value: object = self.root
        for part in unquote(reference[1:]).split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(value, dict) and key in value:
                value = value[key]
            elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
                value = value[int(key)]
            else:
                raise Unfillable(f"it refers to {shown(reference)}, which the file does not have")
        return value


def document_of(content: bytes) -> Document:
    """Reads the JSON and finds out its version."""
    try:
        root = msgspec.json.decode(content.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"not an OpenAPI description: {error}") from error
    except RecursionError as error:
        raise UsageError("its JSON is nested too deeply") from error

    description = mapping(root)
    version = str(description.get("openapi", description.get("swagger", "")))
    if version.startswith(("3.0", "3.1")) and "openapi" in description:
        return Document(description, 3)
    if version == "2.0":
        return Document(description, 2)
    if version:
        raise UsageError(
            f"version {shown(version)} of OpenAPI is not supported", "use 2.0, 3.0 or 3.1"
        )
    raise UsageError("not an OpenAPI description: it has neither 'openapi' nor 'swagger'")


def mapping(value: object) -> Object:
    """An object of the JSON; an empty one in place of anything else."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[object]:
    """An array of the JSON; an empty one in place of anything else."""
    return value if isinstance(value, list) else []


def text_or(value: object, default: str) -> str:
    """A string of the JSON, or the default in place of anything else."""
    return value if isinstance(value, str) else default


def shown(text: str) -> str:
    """A text of the file in a message: one line, and short."""
    line = " ".join(text.split())
    if len(line) <= MOST_SHOWN_CHARACTERS:
        return line
    return f"{line[:MOST_SHOWN_CHARACTERS]}…"
