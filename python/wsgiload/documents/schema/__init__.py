"""The JSON Schemas of what wsgiload writes: "load-2" for one load, "summary-2" for summary.json,
"capacity-2" for capacity.json, "run-2" for run.json, "audit-2" for an audit.

They are generated from the types (`make schemas`). Bring a validator to use them.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from wsgiload.errors import UsageError

NAMES = ("load-2", "summary-2", "capacity-2", "run-2", "audit-2")


def load_schema(name: str) -> dict[str, Any]:
    """The schema of that name, read from inside the package."""
    if name not in NAMES:
        raise UsageError(f"there is no schema {name!r}", f"use one of {', '.join(NAMES)}")
    text = files("wsgiload.documents.schema").joinpath(f"{name}.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
