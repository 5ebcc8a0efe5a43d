"""The schema that the generator derives from its Rust types agrees with that of the Python types.

Compared are keys, whether they must be there, and the kinds of values; not descriptions, bounds and
names.
"""

from __future__ import annotations

import json
from typing import Any

from wsgiload._loadgen import report_schema
from wsgiload.documents.description import json_schema

Schema = dict[str, Any]


def resolved(schema: Schema, root: Schema) -> Schema:
    while "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    return schema


def choices(schema: Schema, root: Schema) -> list[Schema]:
    """The alternatives of a schema, each with a single type."""
    schema = resolved(schema, root)
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return [found for one in schema[key] for found in choices(one, root)]
    if "const" in schema:
        return [{"type": "string"} if isinstance(schema["const"], str) else {"type": "integer"}]
    if "enum" in schema:
        names = {str: "string", int: "integer", type(None): "null"}
        return [{"type": kind} for kind in {names[type(value)] for value in schema["enum"]}]
    types = schema.get("type", [])
    return [schema | {"type": one} for one in ([types] if isinstance(types, str) else types)]


def kinds(found: list[Schema]) -> set[str]:
    return {"number" if one["type"] == "integer" else one["type"] for one in found}


def differences(ours: Schema, theirs: Schema, roots: tuple[Schema, Schema], path: str) -> list[str]:
    """Where two schemas accept different documents; ``theirs`` may accept less."""
    left, right = choices(ours, roots[0]), choices(theirs, roots[1])
    if not kinds(right) <= kinds(left):
        return [f"{path}: {sorted(kinds(right))} is not {sorted(kinds(left))}"]

    found = []
    for one in right:
        matching = [other for other in left if other["type"] == one["type"]]
        if one["type"] == "array" and "items" in one:
            item = _items(matching[0])
            if item is not None and isinstance(one["items"], dict):
                found += differences(item, one["items"], roots, f"{path}[]")
        if one["type"] == "object" and "properties" in one:
            attempts = [_of_object(other, one, roots, path) for other in matching]
            found += min(attempts, key=len)
    return found


def _items(schema: Schema) -> Schema | None:
    items = schema.get("items")
    return items if isinstance(items, dict) else None


def _of_object(ours: Schema, theirs: Schema, roots: tuple[Schema, Schema], path: str) -> list[str]:
    if "properties" not in ours:  # a mapping
        values = ours.get("additionalProperties", {})
        names = theirs["properties"].items()
        return [d for name, one in names for d in differences(values, one, roots, f"{path}.{name}")]
    known, given = ours["properties"], theirs["properties"]
    found = [f"{path}.{name}: unknown to Python" for name in given.keys() - known.keys()]
    missing = set(ours.get("required", ())) - set(theirs.get("required", ()))
    found += [f"{path}.{name}: may be absent in Rust" for name in missing]
    for name in given.keys() & known.keys():
        found += differences(known[name], given[name], roots, f"{path}.{name}")
    return found


def test_the_generator_writes_what_python_reads() -> None:
    ours, theirs = json_schema("load-2"), json.loads(report_schema())
    assert differences(ours, theirs, (ours, theirs), "$") == []


def test_every_key_that_python_knows_is_written_by_the_generator_or_by_python_alone() -> None:
    ours, theirs = json_schema("load-2"), json.loads(report_schema())
    assert ours["properties"].keys() - theirs["properties"].keys() == {"attempts", "resources"}


def test_a_difference_is_found() -> None:
    ours, theirs = json_schema("load-2"), json.loads(report_schema())
    theirs["properties"]["measured_ns"] = {"type": "string"}
    theirs["properties"]["surprise"] = {"type": "string"}
    theirs["required"].remove("clock")
    found = differences(ours, theirs, (ours, theirs), "$")
    assert {text.partition(":")[0] for text in found} == {"$.measured_ns", "$.surprise", "$.clock"}
