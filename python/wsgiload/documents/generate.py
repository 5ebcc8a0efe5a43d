"""Writes the files that are generated from the types: ``load_plan.py`` from those of the generator,
then the JSON Schemas and ``docs/metrics.md``. The front end generates its types from the schema of
the page data.

``python -m wsgiload.documents.generate ROOT``, where ROOT is a checkout. A test fails if the files
are stale.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

from wsgiload.documents.description import (
    DOCUMENTS,
    ClassText,
    all_class_texts,
    json_schema,
    page_schema,
)
from wsgiload.documents.from_rust import plan_module

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


if __name__ == "__main__":
    checkout = Path(sys.argv[1])
    if write_plan(checkout):
        os.execv(
            sys.executable, [sys.executable, "-m", "wsgiload.documents.generate", *sys.argv[1:]]
        )
    write_all(checkout)
