"""Writes the files that are generated from the types: ``load_plan.py`` from those of the generator,
then the JSON Schemas and ``docs/metrics.md``. The front end generates its types from the schema of
the page data.

``python -m wsgiload.documents.generate ROOT``, where ROOT is a checkout. A test fails if the files
are stale.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from wsgiload.documents.audit import AuditReport
from wsgiload.documents.base import Document
from wsgiload.documents.capacity import CapacityResult
from wsgiload.documents.from_rust import plan_module
from wsgiload.documents.load_report import LoadReport
from wsgiload.documents.page_data import LiveFrame, PageData
from wsgiload.documents.run_info import RunInfo
from wsgiload.documents.summary import Summary

PAGE_SCHEMA = Path("frontend", "page-data.schema.json")
_HEADER = """# Keys of the JSON files

Generated from the types in `python/wsgiload/documents/` by `make schemas`; do not edit.

This page lists the keys that results are read by, with one sentence each. The JSON Schemas \
{schemas} have every key, with its source, when it is null, and the plan, host and calibration; \
`wsgiload.documents.schema.load_schema` reads them. [The run directory](run-directory.md) \
describes the files and the columns of the CSV files, [terminology](terminology.md) the terms.

Keys end with their unit where it is not obvious: `_ns` (integer nanoseconds; timestamps are \
those of CLOCK_MONOTONIC), `_bytes`, `_per_s`. A share of 0.09 is 9 %. What is unknown is `null`, \
never 0. `schema_version` is 1.
"""
# The types that the page shows, by part. The others are only in the schemas.
_PARTS = {
    "The JSON of one load (`--json`, `load/<cell>.json`)": (
        "LoadReport",
        "Verdict",
        "Reason",
        "Rates",
        "Outcomes",
        "Distribution",
        "Bounds",
    ),
    "summary.json": (
        "Summary",
        "CellResult",
        "ResourceUse",
        "Answer",
        "RankingLevel",
        "RankingEntry",
        "Comparison",
    ),
    "capacity.json": ("CapacityResult", "ServerCapacity"),
}
_SENTENCE = re.compile(r"(?<=\.) (?=[A-Z`*])")
_LINK_TO_TYPE = re.compile(r"\[([^]]+)\]\(#\w+\)")
# A key that ends with its unit needs no other mention of it.
_UNITS_IN_KEYS = ("_ns", "_s", "_bytes")


def schema_files() -> dict[str, str]:
    """The generated schemas by file name."""
    return {f"{name}.json": json.dumps(json_schema(name), indent=1) + "\n" for name in DOCUMENTS}


def page_schema_text() -> str:
    """The schema of the data in a page."""
    return json.dumps(page_schema(), indent=1) + "\n"


def metrics_page() -> str:
    """``docs/metrics.md``: a list for each type that readers of results look up."""
    folder = "../python/wsgiload/documents/schema"
    schemas = ", ".join(f"[{name}]({folder}/{name}.json)" for name in DOCUMENTS)
    texts = all_class_texts()
    parts = [_HEADER.format(schemas=schemas)]
    for title, names in _PARTS.items():
        parts.append(f"## {title}\n")
        parts += [_section(texts[name]) for name in names]
    return "\n".join(parts)


def write_all(root: Path) -> None:
    """Write every generated file of a checkout."""
    folder = root / "python" / "wsgiload" / "documents" / "schema"
    for name, text in schema_files().items():
        (folder / name).write_text(text, encoding="utf-8")
    (root / "docs" / "metrics.md").write_text(metrics_page(), encoding="utf-8")
    (root / PAGE_SCHEMA).write_text(page_schema_text(), encoding="utf-8")


def _section(text: ClassText) -> str:
    lines = [f"### {text.name}\n", f"{_first_sentence(text.meaning)}\n"]
    for key, field in text.fields.items():
        unit = f" ({field.unit})" if field.unit and not key.endswith(_UNITS_IN_KEYS) else ""
        lines.append(f"- `{key}`{unit}: {_first_sentence(field.meaning)}")
    return "\n".join(lines) + "\n"


def _first_sentence(text: str) -> str:
    """Without links to types, which may be only in the schemas."""
    return _LINK_TO_TYPE.sub(r"\1", _SENTENCE.split(text, 1)[0])


def write_plan(root: Path) -> bool:
    """Write the types of a plan. Returns whether they have changed, so that this process has old
    ones."""
    path = root / "python" / "wsgiload" / "documents" / "load_plan.py"
    before, now = path.read_text(encoding="utf-8"), plan_module()
    path.write_text(now, encoding="utf-8")
    return before != now


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
    "cell_result",
    "attribution_result",
    "over_cells",
    "answer",
    "capacity",
    "run_info",
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


if __name__ == "__main__":
    checkout = Path(sys.argv[1])
    if write_plan(checkout):
        os.execv(
            sys.executable, [sys.executable, "-m", "wsgiload.documents.generate", *sys.argv[1:]]
        )
    write_all(checkout)
