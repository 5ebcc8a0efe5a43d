"""A load report without requests, for tests that set only parts of a report."""

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


def canned_load(**fields: Any) -> LoadReport:
    """Return a load report without requests, with these fields replaced."""
    return msgspec.structs.replace(_empty_load(), **fields)
