"""Which credentials the operations of a description need. Descriptions contain none."""

from __future__ import annotations

from collections.abc import Sequence

from wsgiload.loads.openapi.document import (
    ApiDescription,
    Object,
    Unfillable,
    items,
    mapping,
    text_or,
)
from wsgiload.loads.request import is_token


def credentials_note(document: ApiDescription, operations: Sequence[Object]) -> list[str]:
    """How many operations need credentials, and an option that sends them."""
    names = [name for operation in operations if (name := _scheme_of(document, operation))]
    if not names:
        return []
    examples = dict.fromkeys(_example(_scheme(document, name)) for name in names)
    who = f"{len(names):,} requests need" if len(names) > 1 else "1 request needs"
    options = " or ".join(examples)
    return [f"{who} credentials; add them to the load, for example {options}"]


def _scheme_of(document: ApiDescription, operation: Object) -> str | None:
    """The name of the first required scheme; None if no scheme is required."""
    requirements = items(operation.get("security", document.root.get("security")))
    alternatives = [mapping(one) for one in requirements]
    if not alternatives or {} in alternatives:
        return None
    return next(iter(alternatives[0]))


def _scheme(document: ApiDescription, name: str) -> Object:
    schemes = document.root.get("securityDefinitions")
    if document.version == 3:
        schemes = mapping(document.root.get("components")).get("securitySchemes")
    try:
        return document.object_at(mapping(schemes).get(name))
    except Unfillable:
        return {}


def _example(scheme: Object) -> str:
    name = text_or(scheme.get("name"), "")
    if scheme.get("type") == "apiKey" and is_token(name):
        if scheme.get("in") == "header":
            return f"-H '{name}: KEY'"
        if scheme.get("in") == "cookie":
            return f"-H 'Cookie: {name}=VALUE'"
        return f"{name}=KEY in the queries of the file"
    if "basic" in (scheme.get("type"), scheme.get("scheme")):
        return "-H 'Authorization: Basic <base64 of user:password>'"
    return "-H 'Authorization: Bearer TOKEN'"
