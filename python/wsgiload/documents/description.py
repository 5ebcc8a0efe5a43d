"""Descriptions of the document types: JSON Schemas and tables, from the types' annotations and the
strings below their fields. Pure.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from wsgiload.documents.audit import AuditReport
from wsgiload.documents.base import Document
from wsgiload.documents.capacity import CapacityResult
from wsgiload.documents.load_report import LoadReport
from wsgiload.documents.page_data import LiveFrame, PageData
from wsgiload.documents.run_info import RunInfo
from wsgiload.documents.summary import Summary

# Each stored document: the name of its schema, its type, and its title.
DOCUMENTS: dict[str, tuple[type[Document], str]] = {
    "load-1": (LoadReport, "The report of one load"),
    "summary-1": (Summary, "summary.json of a sweep"),
    "capacity-1": (CapacityResult, "capacity.json of a capacity search"),
    "run-1": (RunInfo, "run.json of a run"),
    "audit-1": (AuditReport, "The JSON of an audit"),
}
# Modules in which the types of documents are defined, in the order of the documentation.
_MODULES = (
    "load_report",
    "load_plan",
    "resources",
    "summary",
    "experiment_facts",
    "cell_result",
    "attribution_result",
    "over_cells",
    "recommendation",
    "answer",
    "capacity",
    "run_info",
    "calibration",
    "audit",
)
_NOTE = re.compile(r" (Unit|Source|Null): (.*?)(?=\.(?: (?:Unit|Source|Null): |$))", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FieldText:
    """The parts of the string below a field."""

    meaning: str
    unit: str
    source: str
    null_when: str


@dataclass(frozen=True, slots=True)
class ClassText:
    """The description of a type, and those of its fields by JSON key."""

    name: str
    meaning: str
    fields: dict[str, FieldText]


def class_texts(module: str) -> list[ClassText]:
    """The types of one module of ``documents``, in the order of their definition."""
    source = inspect.getsource(importlib.import_module(f"wsgiload.documents.{module}"))
    classes = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    return [_class_text(module, node) for node in classes]


def all_class_texts() -> dict[str, ClassText]:
    """The types of all documents by name."""
    return {text.name: text for module in _MODULES for text in class_texts(module)}


def json_schema(name: str) -> dict[str, Any]:
    """The JSON Schema of a stored document."""
    kind, title = DOCUMENTS[name]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:wsgiload:schema:{name}",
        **_schema_of(kind, title, all_class_texts()),
    }


def page_schema() -> dict[str, Any]:
    """The JSON Schema of the data inside a page."""
    texts = {text.name: text for text in class_texts("page_data")}
    schema = _schema_of(PageData, "PageData", texts)
    live = _schema_of(LiveFrame, "LiveFrame", texts)
    live.pop("$defs")
    return {**schema, "$defs": {**schema["$defs"], "LiveFrame": live}}


def _schema_of(kind: type[Document], title: str, texts: Mapping[str, ClassText]) -> dict[str, Any]:
    (root,), components = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    for component, schema in components.items():
        _describe(schema, texts[component])
    document = components.pop(root["$ref"].rpartition("/")[2])
    return {**document, "title": title, "$defs": dict(sorted(components.items()))}


def _describe(schema: dict[str, Any], text: ClassText) -> None:
    schema["description"] = text.meaning
    for key, described in text.fields.items():
        entry = schema["properties"][key]
        entry["description"] = described.meaning
        notes = {"unit": described.unit, "source": described.source}
        notes["null-when"] = described.null_when
        entry |= {f"x-{name}": note for name, note in notes.items() if note}


def _class_text(module: str, node: ast.ClassDef) -> ClassText:
    fields = {}
    names = _json_names(module, node.name)
    for field, text in _documented_fields(node):
        fields[names[field]] = _field_text(text)
    return ClassText(node.name, _one_line(ast.get_docstring(node) or ""), fields)


def _documented_fields(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Every field with the string below it, or with an empty string."""
    for place, statement in enumerate(node.body):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        following = node.body[place + 1] if place + 1 < len(node.body) else None
        is_text = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
        text = following.value.value if is_text else ""  # type: ignore[union-attr]
        yield statement.target.id, str(text)


def _json_names(module: str, name: str) -> dict[str, str]:
    kind = getattr(importlib.import_module(f"wsgiload.documents.{module}"), name)
    return {field.name: field.encode_name for field in msgspec.structs.fields(kind)}


def _field_text(text: str) -> FieldText:
    line = _one_line(text)
    notes = dict(_NOTE.findall(line))
    meaning = _NOTE.sub("", line)
    meaning = re.sub(r"\.+$", ".", meaning.strip())
    return FieldText(meaning, notes.get("Unit", ""), notes.get("Source", ""), notes.get("Null", ""))


def _one_line(text: str) -> str:
    return " ".join(text.split())
