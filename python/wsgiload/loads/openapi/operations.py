"""Each operation of a description as a target, with its body in the preferred media type that can
be sent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from wsgiload.loads.openapi.document import (
    ApiDescription,
    Object,
    Unfillable,
    excerpt,
    items,
    mapping,
    text_or,
)
from wsgiload.loads.openapi.parameters import fill, form_text, json_text, parameters_of, plain_text
from wsgiload.loads.openapi.values import MISSING, Values, specified_value
from wsgiload.loads.targets_text import template_text

# The names of methods in requests; in the description, they are in lower case.
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
_BODILESS = frozenset(("GET", "HEAD"))
_TEMPLATE = re.compile(r"/[^\s?#\x00-\x1f\x7f]*")
_SUCCESS = re.compile(r"2\d\d")
_REDIRECT = re.compile(r"3\d\d")
_USUAL = ["200"]


@dataclass(frozen=True, slots=True)
class Operation:
    """A method of a path."""

    method: str
    template: str
    item: Object
    operation: Object

    @property
    def name(self) -> str:
        """The name in messages and reports."""
        return f"{self.method} {excerpt(self.template)}"


def operations_in(document: ApiDescription) -> Iterator[Operation | tuple[str, Unfillable]]:
    """All operations in the order of the file; for an unreadable path, the reason."""
    for template, described_path in mapping(document.root.get("paths")).items():
        if template.startswith("x-"):  # an extension
            continue
        try:
            item = document.object_at(described_path)
        except Unfillable as unfillable:
            yield excerpt(template), unfillable
            continue
        for method in METHODS:
            if method.lower() in item:
                operation = mapping(item[method.lower()])
                yield Operation(method, template, item, operation)


def target_of(document: ApiDescription, operation: Operation) -> str:
    """The lines of the operation's request in a targets file."""
    if not _TEMPLATE.fullmatch(operation.template):
        raise Unfillable("its path is not a valid URL path")
    parameters = parameters_of(document, operation.item, operation.operation)
    values = fill(document, parameters)
    body = None
    if operation.method not in _BODILESS:
        body = body_of(document, operation.operation, parameters)
    fields = [*values.fields, *([("Content-Type", body.media_type)] if body else [])]
    base = base_path(document, operation.operation, operation.item, document.root)
    path = values.path(base + operation.template)
    text = template_text(operation.method, path, fields, body.content if body else b"")

    name_line = f"--name {operation.name}\n" if path != operation.template else ""
    return text + name_line + _expectation(document, operation.operation)


def base_path(document: ApiDescription, *levels: Object) -> str:
    """The prefix of every path, from the first of the levels that has a server."""
    if document.version == 2:
        return text_or(document.root.get("basePath"), "").rstrip("/")
    for level in levels:
        for server in items(level.get("servers")):
            return _server_path(mapping(server))
    return ""


def _server_path(server: Object) -> str:
    url = text_or(server.get("url"), "")
    for name, variable in mapping(server.get("variables")).items():
        url = url.replace(f"{{{name}}}", text_or(mapping(variable).get("default"), ""))
    try:
        path = urlsplit(url).path.rstrip("/")
    except ValueError:
        return ""
    return f"/{path}" if path and not path.startswith("/") else path


def _expectation(document: ApiDescription, operation: Object) -> str:
    """The line with the listed success statuses, or else redirects; empty for only 200 or none."""
    codes = [str(code) for code in mapping(operation.get("responses"))]
    statuses = sorted(filter(_SUCCESS.fullmatch, codes))
    statuses = statuses or sorted(filter(_REDIRECT.fullmatch, codes))
    if not statuses or statuses == _USUAL:
        return ""
    return f"--expect-status {','.join(statuses)}\n"


_JSON, _FORM, _ANY = "application/json", "application/x-www-form-urlencoded", "*/*"


@dataclass(frozen=True, slots=True)
class Body:
    """The bytes, which may contain placeholders, and their media type."""

    content: bytes
    media_type: str


def body_of(document: ApiDescription, operation: Object, parameters: list[Object]) -> Body | None:
    """The body; None if the operation needs none."""
    try:
        if document.version == 2:
            return _body_2(document, operation, parameters)
        return _body_3(document, operation)
    except Unfillable as unfillable:
        raise Unfillable(f"request body: {unfillable}") from None


def _body_3(document: ApiDescription, operation: Object) -> Body | None:
    request = document.object_at(operation.get("requestBody"))
    media = mapping(request.get("content"))
    reason = Unfillable("it has no media type")
    for media_type in sorted(media, key=_preference):
        try:
            return _body(document, media_type, document.object_at(media[media_type]))
        except Unfillable as unfillable:
            reason = unfillable
    if request.get("required") is True:
        raise reason
    return None


def _body_2(document: ApiDescription, operation: Object, parameters: list[Object]) -> Body | None:
    consumes = [text_or(one, "") for one in items(operation.get("consumes"))]
    consumes = consumes or [text_or(one, "") for one in items(document.root.get("consumes"))]
    whole = next((one for one in parameters if one.get("in") == "body"), None)
    if whole is not None:
        media_type = min(consumes or [_JSON], key=_preference)
        try:
            return _body(document, media_type, whole)
        except Unfillable:
            if whole.get("required") is True:
                raise
            return None

    fields = [one for one in parameters if one.get("in") == "formData"]
    required = [text_or(one.get("name"), "") for one in fields if one.get("required") is True]
    if not required:
        return None
    if consumes and _FORM not in consumes:
        raise Unfillable(f"{excerpt(consumes[0])} bodies are not supported")
    properties = {text_or(one.get("name"), ""): one for one in fields}
    schema: Object = {"type": "object", "properties": properties, "required": required}
    return _body(document, _FORM, {"schema": schema})


def _preference(media_type: str) -> int:
    """JSON first, then forms, then types that need an example."""
    if media_type == _FORM:
        return 1
    return 0 if _is_json(media_type) else 2


def _is_json(media_type: str) -> bool:
    return media_type in (_JSON, _ANY) or "json" in media_type


def _body(document: ApiDescription, media_type: str, medium: Object) -> Body:
    if media_type.startswith("multipart/"):
        raise Unfillable("multipart bodies are not supported")
    value = specified_value(document, medium)
    if value is MISSING:
        value = Values(document, invents_text=True).of(medium.get("schema"))
    if media_type == _FORM:
        return Body(form_text(value).encode(), media_type)
    if _is_json(media_type):
        media_type = _JSON if "*" in media_type else media_type
        return Body(json_text(value).encode(), media_type)
    if "*" in media_type or not isinstance(value, str):
        raise Unfillable(f"{excerpt(media_type)} needs a string as an example")
    return Body(plain_text(value).encode(), media_type)
