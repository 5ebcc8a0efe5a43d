"""Reads and checks the files of a run directory."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from wsgiload.documents.schema import load_schema

from .command import Command


def schema_errors(name: str, document: dict[str, Any]) -> list[str]:
    """The paths at which a document violates its schema."""
    return [
        error.json_path for error in Draft202012Validator(load_schema(name)).iter_errors(document)
    ]


def rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    return list(csv.DictReader(path.read_text().splitlines()))


def only_run(command: Command) -> Path:
    """The only run directory of a command."""
    (run_dir,) = (command.folder / ".wsgiload" / "runs").iterdir()
    return run_dir


def expected_code(summary: dict[str, Any]) -> int:
    """The exit code of a sweep without failed cells, which depends only on the verdicts."""
    assert [cell["failure"] for cell in summary["cells"]] == [None] * len(summary["cells"])
    return 98 if any(cell["verdict"]["status"] == "invalid" for cell in summary["cells"]) else 0
