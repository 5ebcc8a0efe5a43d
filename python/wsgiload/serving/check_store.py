"""Stores the latest check results in a JSON file in the cache; ``servers show`` reads them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from wsgiload.catalogue.names import PROFILES, ServerVariant
from wsgiload.documents.base import decode_json
from wsgiload.environments.cache import cache_folder
from wsgiload.errors import UsageError
from wsgiload.foreign_files import replace_file
from wsgiload.serving.check import CheckResult


class StoredCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check, with the lock file of the checked server."""

    row: CheckResult
    lock: str
    checked_ns: int


def _file() -> Path:
    return cache_folder() / "checks.json"


def _lock_text(variant: ServerVariant) -> str:
    try:
        return variant.server.lock_path.read_text()
    except OSError:
        return ""


def _read() -> dict[str, StoredCheck]:
    """The stored results by server and profile; empty if they are unreadable or from another
    version."""
    try:
        return decode_json(_file().read_bytes(), dict[str, StoredCheck])
    except (OSError, ValueError, msgspec.MsgspecError, RecursionError):
        return {}


def store_checks(chosen: Sequence[ServerVariant], results: Sequence[CheckResult]) -> None:
    """Store these results; keeps those of other servers and profiles."""
    stored = _read()
    for variant, result in zip(chosen, results, strict=True):
        checked = StoredCheck(row=result, lock=_lock_text(variant), checked_ns=time.time_ns())
        stored[f"{result.server}@{result.profile}"] = checked

    path = _file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, msgspec.json.format(msgspec.json.encode(stored), indent=1))
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror}",
            "set WSGILOAD_CACHE_DIR to a writable directory",
        ) from error


def read_checks(variant: ServerVariant) -> list[CheckResult]:
    """The results for this variant, by profile, if its lock file is still the same."""
    stored = _read()
    checks = [stored.get(f"{variant.id}@{profile}") for profile in PROFILES]
    lock = _lock_text(variant)
    return [check.row for check in checks if check is not None and check.lock == lock]
