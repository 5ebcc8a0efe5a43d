"""Keeps what the last checks found, so that ``servers show`` can tell it. One JSON file in the
cache."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wsgiload.catalogue.names import PROFILES, ServerVariant
from wsgiload.environments.provision import cache_folder
from wsgiload.errors import UsageError

Row = dict[str, Any]


def _file() -> Path:
    return cache_folder() / "checks.json"


def _lock_text(found: ServerVariant) -> str:
    try:
        return found.server.lock_path.read_text()
    except OSError:
        return ""


def _read() -> dict[str, Row]:
    try:
        stored: dict[str, Row] = json.loads(_file().read_text())
    except (OSError, ValueError):
        return {}
    return stored


def store_checks(chosen: Sequence[ServerVariant], rows: Sequence[Mapping[str, Any]]) -> None:
    """Keep these rows; those of other servers and profiles stay."""
    stored = _read()
    for found, row in zip(chosen, rows, strict=True):
        facts = {"row": dict(row), "lock": _lock_text(found), "checked_ns": time.time_ns()}
        stored[f"{row['server']}@{row['profile']}"] = facts
    path = _file()
    unfinished = path.with_suffix(".unfinished")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(json.dumps(stored, indent=1))
        unfinished.replace(path)
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror}",
            "set WSGILOAD_CACHE_DIR to a writable directory",
        ) from error


def read_checks(found: ServerVariant) -> list[Row]:
    """What was found of this variant, by profile; nothing that was found with another lock."""
    stored = [_read().get(f"{found.id}@{profile}") for profile in PROFILES]
    return [
        facts["row"] for facts in stored if facts is not None and facts["lock"] == _lock_text(found)
    ]
