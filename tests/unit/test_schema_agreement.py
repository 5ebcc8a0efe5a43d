"""The JSON Schema derived from the Rust types agrees with that of the Python types.

The tests compare keys, required keys and value types, but not descriptions, bounds or names.
"""

from __future__ import annotations

import json
from typing import Any

from wsgiload._loadgen import report_schema
from wsgiload.documents.generate import json_schema

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
            return [choice for one in schema[key] for choice in choices(one, root)]

    if "const" in schema:
        return [{"type": "string"} if isinstance(schema["const"], str) else {"type": "integer"}]
    if "enum" in schema:
        names = {str: "string", int: "integer", type(None): "null"}
        return [{"type": kind} for kind in {names[type(value)] for value in schema["enum"]}]
    types = schema.get("type", [])
    return [schema | {"type": one} for one in ([types] if isinstance(types, str) else types)]


def kinds(schemas: list[Schema]) -> set[str]:
    return {"number" if one["type"] == "integer" else one["type"] for one in schemas}


def differences(python: Schema, rust: Schema, roots: tuple[Schema, Schema], path: str) -> list[str]:
    """Where two schemas accept different documents; ``rust`` may accept fewer."""
    python_choices, rust_choices = choices(python, roots[0]), choices(rust, roots[1])
    if not kinds(rust_choices) <= kinds(python_choices):
        return [f"{path}: {sorted(kinds(rust_choices))} is not {sorted(kinds(python_choices))}"]

    messages = []
    for one in rust_choices:
        matching = [other for other in python_choices if other["type"] == one["type"]]
        if one["type"] == "array" and "items" in one:
            item = _items(matching[0])
            if item is not None and isinstance(one["items"], dict):
                messages += differences(item, one["items"], roots, f"{path}[]")
        if one["type"] == "object" and "properties" in one:
            attempts = [_of_object(other, one, roots, path) for other in matching]
            messages += min(attempts, key=len)
    return messages


def _items(schema: Schema) -> Schema | None:
    items = schema.get("items")
    return items if isinstance(items, dict) else None


def _of_object(python: Schema, rust: Schema, roots: tuple[Schema, Schema], path: str) -> list[str]:
    if "properties" not in python:  # a mapping
        values = python.get("additionalProperties", {})
        names = rust["properties"].items()
        return [
            message
            for name, one in names
            for message in differences(values, one, roots, f"{path}.{name}")
        ]
    python_properties, rust_properties = python["properties"], rust["properties"]
    messages = [
        f"{path}.{name}: unknown to Python"
        for name in rust_properties.keys() - python_properties.keys()
    ]
    missing = set(python.get("required", ())) - set(rust.get("required", ()))
    messages += [f"{path}.{name}: may be absent in Rust" for name in missing]

    for name in rust_properties.keys() & python_properties.keys():
        messages += differences(
            python_properties[name], rust_properties[name], roots, f"{path}.{name}"
        )

    return messages


def test_python_accepts_every_report_of_the_generator() -> None:
    python, rust = json_schema("load-1"), json.loads(report_schema())
    assert differences(python, rust, (python, rust), "$") == []


def test_only_attempts_and_resources_are_added_by_python() -> None:
    python, rust = json_schema("load-1"), json.loads(report_schema())
    assert python["properties"].keys() - rust["properties"].keys() == {"attempts", "resources"}


def test_differences_are_found() -> None:
    python, rust = json_schema("load-1"), json.loads(report_schema())
    rust["properties"]["measured_ns"] = {"type": "string"}
    rust["properties"]["surprise"] = {"type": "string"}
    rust["required"].remove("clock")

    messages = differences(python, rust, (python, rust), "$")
    assert {text.partition(":")[0] for text in messages} == {
        "$.measured_ns",
        "$.surprise",
        "$.clock",
    }
