"""The JSON Schemas of what wsgiload writes: "load-1" for one load, "summary-1" for summary.json,
"capacity-1" for capacity.json, "run-1" for run.json, "audit-1" for an audit.

They are generated from the types (`make schemas`). Bring a validator to use them.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from wsgiload.errors import UsageError

NAMES = ("load-1", "summary-1", "capacity-1", "run-1", "audit-1")


def load_schema(name: str) -> dict[str, Any]:
    """The schema of that name, read from inside the package."""
    if name not in NAMES:
        raise UsageError(f"there is no schema {name!r}", f"use one of {', '.join(NAMES)}")
    text = files("wsgiload.documents.schema").joinpath(f"{name}.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
