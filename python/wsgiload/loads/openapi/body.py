"""The body of an operation, in the preferred media type that can be sent."""

from __future__ import annotations

from dataclasses import dataclass

from wsgiload.loads.openapi.document import (
    ApiDescription,
    Object,
    Unfillable,
    excerpt,
    items,
    mapping,
    text_or,
)
from wsgiload.loads.openapi.texts import form_text, json_text, plain_text
from wsgiload.loads.openapi.values import MISSING, Values, specified_value

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
