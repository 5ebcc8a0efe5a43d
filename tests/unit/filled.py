"""Documents of which a test gives only the keys that it is about; the rest is null or plain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from wsgiload.documents.base import Document
from wsgiload.documents.load_report import Outcomes, Rates
from wsgiload.documents.summary import CellResult, ExperimentFacts

Json = dict[str, Any]

_PLAIN: Json = {"server": "a", "run": 1, "warmup_s": 0.0, "duration_s": 1.0, "notes": []}


def filled_summary(experiment: Json, cells: Sequence[Json], **more: Any) -> Json:
    """A summary.json with this experiment and these cells."""
    plain = {"duration_s": 1.0, "warmup_s": 0.0, "runs": 1, "servers": []} | experiment
    return {
        "schema_version": 2,
        "status": "complete",
        "experiment": _filled(ExperimentFacts, plain),
        "order": [],
        "seed": 1,
        "cells": [_filled_cell(cell) for cell in cells],
    } | more


def filled_run(plan: Json, host: Json | None = None) -> Json:
    """A run.json with this plan."""
    return {
        "schema_version": 2,
        "started_utc": "2026-11-21T09:30:00+00:00",
        "status": "complete",
        "plan": plan,
        "host": host or {},
    }


def _filled_cell(cell: Json) -> Json:
    filled = _filled(CellResult, _PLAIN | cell)
    counts = dict.fromkeys(Outcomes.__struct_fields__, 0)
    if filled["outcomes"] is not None:
        filled["outcomes"] = counts | filled["outcomes"]
    if filled["rate_result"] is not None:
        filled["rate_result"] = dict.fromkeys(Rates.__struct_fields__) | filled["rate_result"]
    return filled


def _filled(kind: type[Document], plain: Json) -> Json:
    required = [field.encode_name for field in msgspec.structs.fields(kind) if field.required]
    known = {field.encode_name for field in msgspec.structs.fields(kind)}
    return {key: plain.get(key) for key in required} | {
        key: value for key, value in plain.items() if key in known
    }
