"""An API description as untrusted JSON: resolves references, within bounds. Reads nothing outside
of the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import unquote

import msgspec

from wsgiload.errors import UsageError

Object = dict[str, object]

# References followed for one value; a longer chain is treated as a cycle.
MAX_REFERENCES = 32
# Nodes visited in one file; a few nested schemas can expand to more values than fit into memory.
MAX_NODES = 1_000_000
_BUNDLE = "bundle it into one file first: npx @redocly/cli bundle FILE -o bundled.json"
MAX_SHOWN_CHARACTERS = 80


class Unfillable(Exception):
    """The description has no value for a part of a request."""


class TooLarge(Unfillable):
    """The schemas are too large; the rest of the file is ignored."""


@dataclass(slots=True)
class ApiDescription:
    """The description, version 2 (Swagger 2.0) or 3 (OpenAPI 3.0 and 3.1)."""

    root: Object
    version: int
    _nodes: int = field(default=0, init=False)
    _open: list[str] = field(default_factory=list, init=False)

    def object_at(self, value: object) -> Object:
        """The object, with references resolved; an empty object for any other value."""
        for _ in range(MAX_REFERENCES):
            target = mapping(value)
            reference = target.get("$ref")
            if not isinstance(reference, str):
                return target
            value = self._resolved(reference)
        raise Unfillable("its references are circular")

    @contextmanager
    def inside(self, value: object) -> Iterator[Object]:
        """The same object; within the block, references to it are rejected."""
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
        """Count one visited node."""
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise TooLarge("the schemas of the file are too large")

    def _resolved(self, reference: str) -> object:
        if not reference.startswith("#"):
            raise Unfillable(f"it refers to {excerpt(reference)}, outside of the file; {_BUNDLE}")
        value: object = self.root
        for part in unquote(reference[1:]).split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(value, dict) and key in value:
                value = value[key]
            elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
                value = value[int(key)]
            else:
                raise Unfillable(f"it refers to {excerpt(reference)}, which is not in the file")
        return value


def document_of(content: bytes) -> ApiDescription:
    """Decode the JSON and detect its version."""
    try:
        root = msgspec.json.decode(content.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"not an OpenAPI description: {error}") from error
    except RecursionError as error:
        raise UsageError("the JSON is nested too deeply") from error

    description = mapping(root)
    version = str(description.get("openapi", description.get("swagger", "")))
    if version.startswith(("3.0", "3.1")) and "openapi" in description:
        return ApiDescription(description, 3)
    if version == "2.0":
        return ApiDescription(description, 2)
    if version:
        raise UsageError(
            f"version {excerpt(version)} of OpenAPI is not supported", "use 2.0, 3.0 or 3.1"
        )
    raise UsageError("not an OpenAPI description: it has neither 'openapi' nor 'swagger'")


def mapping(value: object) -> Object:
    """The value if it is a JSON object; otherwise an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[object]:
    """The value if it is a JSON array; otherwise an empty one."""
    return value if isinstance(value, list) else []


def text_or(value: object, default: str) -> str:
    """The value if it is a string; otherwise the default."""
    return value if isinstance(value, str) else default


def excerpt(text: str) -> str:
    """A text from the file for messages: one line, shortened."""
    line = " ".join(text.split())
    if len(line) <= MAX_SHOWN_CHARACTERS:
        return line
    return f"{line[:MAX_SHOWN_CHARACTERS]}…"
