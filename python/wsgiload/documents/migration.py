"""Version 1 of the stored documents as version 2: checks got names, and findings of the doctor a
``fix``."""

from __future__ import annotations

from typing import Any

from wsgiload.documents.check_names import code_of, name_of

Json = dict[str, Any]


def migrate_load(load: Json) -> Json:
    """A load report of version 1."""
    plan = load["plan"]
    thresholds = {name_of(check): keys for check, keys in plan.get("thresholds", {}).items()}
    return load | {
        "schema_version": 2,
        "plan": plan | {"thresholds": thresholds},
        "verdict": _verdict(load["verdict"]),
        "not_checked": _not_checked(load["not_checked"]),
    }


def migrate_summary(summary: Json) -> Json:
    """A summary.json of version 1."""
    return summary | {
        "schema_version": 2,
        "cells": [_cell(cell) for cell in summary["cells"]],
    }


def migrate_run(run: Json) -> Json:
    """A run.json of version 1."""
    findings = [_finding(finding) for finding in run.get("doctor", ())]
    return run | {"schema_version": 2, "doctor": findings}


def migrate_capacity(capacity: Json) -> Json:
    """A capacity.json of version 1."""
    servers = [one | {"verdict": _verdict(one["verdict"])} for one in capacity["servers"]]
    return capacity | {"schema_version": 2, "servers": servers}


def _cell(cell: Json) -> Json:
    return cell | {
        "verdict": _verdict(cell["verdict"]),
        "not_checked": _not_checked(cell.get("not_checked")),
    }


def _verdict(verdict: Json | None) -> Json | None:
    if verdict is None:
        return None
    return verdict | {"reasons": [_reason(reason) for reason in verdict["reasons"]]}


def _reason(reason: Json) -> Json:
    name = name_of(reason["check"])
    return reason | {"check": name, "code": code_of(name), "fix": None}


def _not_checked(entries: list[Json] | None) -> list[Json] | None:
    if entries is None:
        return None
    return [entry | {"check": name_of(entry["check"])} for entry in entries]


def _finding(finding: Json) -> Json:
    plain = dict(finding)
    fix = plain.pop("cure", None)
    return plain | {"fix": fix}
