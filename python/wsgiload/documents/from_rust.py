"""Writes the types of a plan (``load_plan.py``) from the types of the generator, whose schema the
built extension contains. Imports no document, because the types may be stale."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from wsgiload._loadgen import report_schema

Schema = Mapping[str, Any]

_HEADER = '''"""The plan of one load: the input of the generator, repeated in its report.

Generated from the types in ``crates/loadgen/src/plan`` by ``make schemas``; do not edit. The
generator validates a plan and fills in its fixed defaults; ``None`` means that the generator
chooses the value.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from wsgiload.documents.base import Document, NonNegativeInt, PositiveInt
'''
# A plan may contain only some of the thresholds.
_MAPPINGS = {"Thresholds": "dict[str, dict[str, float]]"}
# The Python names of objects that are alternatives without a name.
_NAMELESS = {"Keepalive": "KeepaliveLimit"}
_SIMPLE = {"string": "str", "number": "float", "boolean": "bool", "null": "None"}
_UNITS = {"_ns": "ns", "_per_s": "1/s"}


def plan_module() -> str:
    """The content of ``load_plan.py``."""
    writer = _Writer(json.loads(report_schema())["$defs"])
    writer.annotation({"$ref": "#/$defs/LoadPlan"})
    return "\n".join([_HEADER, *writer.aliases, "", *writer.classes]).rstrip() + "\n"


class _Writer:
    """Collects the classes and the aliases of words that a type needs, each after those it uses."""

    def __init__(self, types: Mapping[str, Schema]) -> None:
        self.types = types
        self.aliases: list[str] = []
        self.classes: list[str] = []
        self._names: dict[str, str] = dict(_MAPPINGS)

    def annotation(self, schema: Schema) -> str:
        """The annotation of a value."""
        if "$ref" in schema:
            return self._named(schema["$ref"].rpartition("/")[2])
        if "anyOf" in schema:
            return " | ".join(self.annotation(one) for one in schema["anyOf"])
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        return " | ".join(self._simple(kind, schema) for kind in kinds)

    def _simple(self, kind: str, schema: Schema) -> str:
        if kind == "integer":
            return {0: "NonNegativeInt", 1: "PositiveInt"}.get(schema.get("minimum", -1), "int")
        if kind == "array" and "prefixItems" in schema:
            return f"tuple[{', '.join(self.annotation(one) for one in schema['prefixItems'])}]"
        if kind == "array":
            return f"tuple[{self.annotation(schema['items'])}, ...]"
        return _SIMPLE[kind]

    def _named(self, name: str) -> str:
        if name not in self._names:
            self._names[name] = self._define(name, self.types[name])
        return self._names[name]

    def _define(self, name: str, schema: Schema) -> str:
        """Define a type of this name if it needs one. Returns its annotation."""
        if schema.get("type") == "object":
            self.classes.append(self._class(name, schema, list(self._fields(schema))))
            return name
        if "oneOf" not in schema:
            return self.annotation(schema)

        words = [json.dumps(one["const"]) for one in schema["oneOf"] if "const" in one]
        objects = [one for one in schema["oneOf"] if "properties" in one]
        if not objects:
            self.aliases.append(f"{name} = Literal[{', '.join(words)}]")
            return name
        if not words:  # exactly one of several keys
            fields = [field for one in objects for field in self._alternative(one)]
            self.classes.append(self._class(name, {**schema, "required": []}, fields))
            return name
        (nameless,) = objects
        fields = list(self._fields(nameless))
        self.classes.append(self._class(_NAMELESS[name], nameless, fields))
        return f"Literal[{', '.join(words)}] | {_NAMELESS[name]}"

    def _alternative(self, schema: Schema) -> Iterator[str]:
        for key, value in schema["properties"].items():
            yield _field(key, f"{self.annotation(value)} | None = None", schema["description"])

    def _fields(self, schema: Schema) -> Iterator[str]:
        """The fields: those that may be absent, then the others in the order of the Rust type."""
        required, properties = schema.get("required", []), schema["properties"]
        omits = len(required) < len(properties)
        absent = [key for key in properties if key not in required]
        for key in [*absent, *required]:
            value = properties[key]
            has_default = key not in required if omits else "default" in value
            default = f" = {self._default(value)}" if has_default else ""
            text = value.get("description", schema["description"])
            yield _field(key, self.annotation(value) + default, text)

    def _default(self, schema: Schema) -> str:
        value = schema.get("default")
        if isinstance(value, dict):
            kind = self.annotation(schema)
            is_mapping = kind.startswith("dict")
            return "msgspec.field(default_factory=dict)" if is_mapping else f"{kind}()"
        if isinstance(value, list):
            return f"({', '.join(map(str, value))},)" if value else "()"
        if isinstance(value, str):
            return json.dumps(value)
        return f"{value:_}" if isinstance(value, int) and value > 1 else repr(value)

    def _class(self, name: str, schema: Schema, fields: list[str]) -> str:
        omits = len(schema.get("required", ())) < len(fields)
        settings = "frozen=True, kw_only=True" + (", omit_defaults=True" if omits else "")
        lines = [f"\nclass {name}(Document, {settings}):", _text(schema["description"]), ""]
        return "\n".join([*lines, *fields, ""])


def _field(key: str, annotation: str, text: str) -> str:
    unit = next((unit for suffix, unit in _UNITS.items() if key.endswith(suffix)), None)
    text = " ".join(text.split()).replace("`None`:", "Null:")
    if unit is not None and "Unit: " not in text:
        meaning, null, rest = text.partition(" Null: ")
        text = f"{meaning} Unit: {unit}.{null}{rest}"
    return f"    {key}: {annotation}\n{_text(text)}"


def _text(text: str) -> str:
    """A string below a field or a class, wrapped."""
    text = re.sub(r"\s+", " ", text)
    lines = textwrap.wrap(f'"""{text}"""', 96, break_long_words=False, break_on_hyphens=False)
    return textwrap.indent("\n".join(lines), "    ")
