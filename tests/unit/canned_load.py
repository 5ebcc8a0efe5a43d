"""A report of a load in which nothing was sent, for tests that are about parts of it."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

import wsgiload
from wsgiload.documents.load_report import LoadReport


@cache
def _empty_load() -> LoadReport:
    with wsgiload.start("http://127.0.0.1:9/", rate=1e-6, duration=0.001) as handle:
        return handle.result().document


def canned_load(**parts: Any) -> LoadReport:
    """That report with these parts instead of its own."""
    return msgspec.structs.replace(_empty_load(), **parts)
