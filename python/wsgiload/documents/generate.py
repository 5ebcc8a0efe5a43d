"""Writes the files that are generated from the types: ``load_plan.py`` from those of the generator,
then the JSON Schemas and ``docs/metrics.md``. The front end generates its types from the schema of
the page data.

``python -m wsgiload.documents.generate ROOT``, where ROOT is a checkout. A test fails if the files
are stale.
"""

from __future__ import annotations

import json
import os
import sys
from importlib.resources import files
from pathlib import Path

from wsgiload.documents.description import (
    DOCUMENTS,
    ClassText,
    class_texts,
    json_schema,
    page_schema,
)
from wsgiload.documents.from_rust import plan_module

PAGE_SCHEMA = Path("frontend", "page-data.schema.json")
_HEADER = """# Keys of the JSON and CSV files

Generated from the types in `python/wsgiload/documents/` by `make schemas`; do not edit.

Each table describes a type of JSON object or the columns of a CSV file. The top-level objects are \
[LoadReport](#loadreport), [Summary](#summary), [CapacityResult](#capacityresult), \
[RunInfo](#runinfo), [Calibration](#calibration) and [AuditReport](#auditreport).

Unless a table states another unit, times are in nanoseconds, timestamps are readings of \
CLOCK_MONOTONIC, sizes are in bytes, and rates are per second. A ratio or share of 0.09 is 9 %. \
Unknown values are `null` in JSON and empty in CSV, never 0. The last column states when a value \
is null. *An entry* means a single value of a list or mapping; *not set; X* means that X applies \
instead. [terminology.md](terminology.md) explains the terms.

The package contains the JSON Schemas {names} (`wsgiload.documents.schema.load_schema`). \
Documents of these schemas have `schema_version` 1.
"""
_PARTS = {
    "load_report": "The JSON of one load (`--json`, `load/<cell>.json`)",
    "load_plan": "The plan of a load",
    "resources": "Resources of a server",
    "summary": "summary.json",
    "experiment_facts": "summary.json: the plan",
    "cell_result": "summary.json: the cells",
    "attribution_result": "summary.json: coincidences",
    "over_cells": "summary.json: results over several cells",
    "recommendation": "summary.json: recommendations",
    "answer": "summary.json: the answer",
    "capacity": "capacity.json",
    "run_info": "run.json",
    "calibration": "The JSON of `wsgiload calibrate`",
    "audit": "The JSON of `wsgiload audit`",
}


def schema_files() -> dict[str, str]:
    """The generated schemas by file name."""
    return {f"{name}.json": json.dumps(json_schema(name), indent=1) + "\n" for name in DOCUMENTS}


def page_schema_text() -> str:
    """The schema of the data in a page."""
    return json.dumps(page_schema(), indent=1) + "\n"


def metrics_page() -> str:
    """``docs/metrics.md``: a table for each object, then the columns of the CSV files."""
    names = ", ".join(f"`{name}`" for name in DOCUMENTS)
    parts = [_HEADER.format(names=names)]
    for module, title in _PARTS.items():
        parts.append(f"## {title}\n")
        parts += [_table(text) for text in class_texts(module)]
    parts.append(files("wsgiload.documents").joinpath("csv_columns.md").read_text("utf-8"))
    return "\n".join(parts)


def write_all(root: Path) -> None:
    """Write every generated file of a checkout."""
    folder = root / "python" / "wsgiload" / "documents" / "schema"
    for name, text in schema_files().items():
        (folder / name).write_text(text, encoding="utf-8")
    (root / "docs" / "metrics.md").write_text(metrics_page(), encoding="utf-8")
    (root / PAGE_SCHEMA).write_text(page_schema_text(), encoding="utf-8")


def _table(text: ClassText) -> str:
    rows = [f"### {text.name}\n", f"{text.meaning}\n"]
    rows += ["| key | meaning | unit | source | null when |", "|---|---|---|---|---|"]
    for key, field in text.fields.items():
        columns = (field.meaning, field.unit, field.source, field.null_when)
        cells = " | ".join(column.replace("|", "\\|") for column in columns)
        rows.append(f"| `{key}` | {cells} |".replace("|  |", "| |").replace("|  |", "| |"))
    return "\n".join(rows) + "\n"


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
