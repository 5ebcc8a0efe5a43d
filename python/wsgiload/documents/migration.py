"""Converts stored documents of version 1 to version 2, with names for checks and new names for some
keys.

``renames`` then replaces names that version 2 no longer has.
"""

from __future__ import annotations

from typing import Any

from wsgiload.documents.check_names import code_of, name_of

Json = dict[str, Any]


def migrate_load(load: Json) -> Json:
    """Convert a load report of version 1."""
    plan = load["plan"]
    thresholds = {name_of(check): keys for check, keys in plan.get("thresholds", {}).items()}
    return load | {
        "schema_version": 2,
        "plan": plan | {"thresholds": thresholds},
        "verdict": _verdict(load["verdict"]),
        "diagnostics": [],
        "transfer_ns": None,
        "not_checked": _not_checked(load["not_checked"]),
        "connections": _connections(load["connections"]),
        "client": _client(load["client"]),
    }


def migrate_summary(summary: Json) -> Json:
    """Convert a summary.json of version 1."""
    cells = [_cell(cell) for cell in summary["cells"]]
    renamed = _renamed(summary, {"power": "efficiency"}) | {
        "schema_version": 2,
        "experiment": _experiment(summary["experiment"]),
        "cells": cells,
    }
    if renamed.get("efficiency") is not None:
        renamed["efficiency"] = [_efficiency(one) for one in renamed["efficiency"]]
    if renamed.get("recommendations") is not None:
        renamed["recommendations"] = [_recommendation(one) for one in renamed["recommendations"]]
    if renamed.get("interventions") is not None:
        renamed["interventions"] = [_intervention(one) for one in renamed["interventions"]]
    return renamed


def migrate_run(run: Json) -> Json:
    """Convert a run.json of version 1."""
    findings = [_finding(finding) for finding in run.get("doctor", ())]
    return run | {"schema_version": 2, "plan": _stored_plan(run["plan"]), "doctor": findings}


def migrate_capacity(capacity: Json) -> Json:
    """Convert a capacity.json of version 1."""
    servers = [
        one | {"verdict": _verdict(one["verdict"]), "limited_by": None}
        for one in capacity["servers"]
    ]
    recommendations = [_recommendation(one) for one in capacity["recommendations"]]
    return capacity | {
        "schema_version": 2,
        "servers": servers,
        "recommendations": recommendations,
    }


def _renamed(plain: Json, names: dict[str, str]) -> Json:
    return {names.get(key, key): value for key, value in plain.items()}


def _experiment(experiment: Json) -> Json:
    limits = experiment.get("check_thresholds", {})
    return experiment | {"check_thresholds": {_threshold(name): limits[name] for name in limits}}


def _stored_plan(plan: Json) -> Json:
    """The plan of a sweep or of a capacity search. The latter contains the plan of its trials."""
    if "experiment" in plan:
        return plan | {"experiment": _stored_plan(plan["experiment"])}
    load = plan.get("load")
    if not isinstance(load, dict):
        return plan
    limits = [[_threshold(name), limit] for name, limit in load.get("check_thresholds", ())]
    return plan | {"load": load | {"check_thresholds": limits}}


def _threshold(name: str) -> str:
    check, _, key = name.partition(".")
    return f"{name_of(check)}.{key}"


def _cell(cell: Json) -> Json:
    renamed = _renamed(cell, {"outside_counts": "external_counts", "capacity": "concurrency"})
    concurrency = renamed.get("concurrency")
    if concurrency is not None:
        concurrency = _renamed(concurrency, {"connections_answered": "connections_served"})
    return renamed | {
        "concurrency": concurrency,
        "verdict": _verdict(cell["verdict"]),
        "not_checked": _not_checked(cell.get("not_checked")),
    }


def _intervention(intervention: Json) -> Json:
    return intervention | {
        half: [_cell(cell) for cell in intervention[half]] for half in ("limited", "lifted")
    }


def _efficiency(efficiency: Json) -> Json:
    names = {"power_per_s2": "efficiency_per_s2"}
    return efficiency | {"points": [_renamed(point, names) for point in efficiency["points"]]}


def _recommendation(recommendation: Json) -> Json:
    recommended, refused = recommendation["recommended"], recommendation["refused"]
    return recommendation | {
        "recommended": recommended and _renamed(recommended, {"alike": "tied"}),
        "refused": refused and _renamed(refused, {"settle": "needs"}),
    }


def _connections(connections: Json) -> Json:
    ports = connections["local_ports"]
    return connections | {"local_ports": ports and _renamed(ports, {"remark": "warning"})}


def _client(client: Json) -> Json:
    names = {"hiccups": "stalls", "own_instants": "user_timestamps"}
    return _renamed(client, names) | {
        "stalls": _renamed(client["hiccups"], {"answers": "responses"}),
        "stamp_doubts": _renamed(client["stamp_doubts"], {"disbelieved": "rejected"}),
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
