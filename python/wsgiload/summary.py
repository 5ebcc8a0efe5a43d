"""Turns the records of cells into summary.json. Pure: it measures, writes and prints nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from wsgiload.analysis import replaced
from wsgiload.catalogue import ServerVariant
from wsgiload.errors import EXIT_INTERRUPTED, EXIT_INVALID, EXIT_OK, EXIT_SERVER, EXIT_THRESHOLD
from wsgiload.plan import Cell, experiment_facts
from wsgiload.record import CellRecord, Setting
from wsgiload.units import NS_PER_S

Json = dict[str, Any]
Status = Literal["complete", "interrupted", "failed"]

_DISTRIBUTIONS = ("response_time_ns", "service_time_ns", "send_lag_ns", "connect_time_ns")


@dataclass(frozen=True, slots=True)
class Progress:
    """A sweep as far as it has come."""

    order: Sequence[Cell]
    records: Sequence[CellRecord]
    status: Status
    # Cells that were summarised before: of this sweep, or of the interrupted run that it resumes.
    earlier: Sequence[Json] = ()


def summarise_sweep(found: Mapping[str, ServerVariant], setting: Setting, progress: Progress) -> Json:
    """summary.json without its version."""
    experiment = setting.experiment
    facts = dict(experiment_facts(experiment, tuple(found)))
    facts["server_cpus"] = list(setting.cpu_plan.server_cpus)
    facts["client_cpus"] = list(setting.cpu_plan.client_cpus)
    return {
        "status": progress.status,
        "experiment": facts,
        "order": [cell.id for cell in progress.order],
        "seed": experiment.seed,
        "cells": [
            *progress.earlier,
            *(summarise_cell(record, found[record.cell.server], setting) for record in progress.records),
        ],
    }


def summarise_cell(record: CellRecord, found: ServerVariant, setting: Setting) -> Json:
    """One entry of ``cells``; what was not measured is None."""
    cell, load = record.cell, record.load
    environment, resources, ended = record.environment, record.resources(), record.server_exit
    return {
        "id": cell.id,
        "attempt": cell.attempt,
        "server": found.server.name,
        "variant": found.variant.name,
        "alias": found.alias,
        "profile": found.profile or setting.experiment.profile,
        "size": found.size,
        "legacy": found.server.legacy,
        "version": environment.version if environment else None,
        "python": environment.python_version if environment else None,
        "rate": cell.level.rate_per_s,
        "connections": cell.level.connections,
        "run": cell.run,
        "verdict": _verdict(record, setting),
        "rate_result": load["rate"] if load else None,
        "outcomes": load["outcomes"] if load else None,
        **{name: load[name] if load else None for name in _DISTRIBUTIONS},
        "offered_quantiles_ns": load["offered_quantiles_ns"] if load else None,
        "limits": _limits(record, setting),
        "resources": resources.to_dict() if resources else None,
        "server_exit": {"code": ended.code, "signal": ended.signal, "clean": ended.clean} if ended else None,
        "failure": _failure(record),
        "settled_s": record.settled.waited_s if record.settled is not None else None,
        "warmup_s": 0.0 if found.variant.cold else setting.experiment.load.warmup_ns_at(cell.level) / NS_PER_S,
        "duration_s": setting.experiment.load.duration_ns / NS_PER_S,
        "unhealthy_s": record.unhealthy_s(),
        "keepalive_honoured": record.keepalive_honoured,
        "backlog": record.backlog,
        "capacity": record.capacity.to_dict() if record.capacity is not None else None,
        "notes": list(record.notes),
    }


def _failure(record: CellRecord) -> Json | None:
    failure = record.failure
    if failure is None:
        return None
    return {"step": failure.step, "message": failure.message, "log_tail": failure.log_tail}


def _limits(record: CellRecord, setting: Setting) -> Json | None:
    enforcement = record.enforcement
    if enforcement is None:
        return None
    return {
        "backend": enforcement.backend,
        "cpus": setting.limits.cpus,
        "memory_bytes": setting.limits.memory_bytes,
        "pids": setting.limits.pids,
        "server_cpus": list(setting.cpu_plan.server_cpus),
        "client_cpus": list(setting.cpu_plan.client_cpus),
        "read_back": dict(enforcement.read_back),
        "not_enforced": list(enforcement.not_enforced),
    }


# Linux delays an acknowledgement by 40 ms (TCP_DELACK_MIN), rounded to its timer.
DELAYED_ACKNOWLEDGEMENT_NS = (36_000_000, 50_000_000)


def _reason(check: str, level: str, message: str, value: object, limit: object) -> Json:
    return {"check": check, "level": level, "message": message, "value": value, "limit": limit}


def _verdict(record: CellRecord, setting: Setting) -> Json | None:
    """The generator's verdict, with what only the orchestrator can know."""
    if record.failure is not None:
        reason = _reason("failure", "invalid", record.failure.message, 1, 0)
        without_load = "client" if record.load is None else "server"
        blame = {"load": without_load, "limits": "host"}.get(record.failure.step, "server")
        return {"status": "invalid", "blame": blame, "reasons": [reason]}
    if record.load is None:
        return None
    verdict = record.load["verdict"]
    added = _own_reasons(record, setting)
    if not added:
        return dict(verdict)
    is_first = verdict["status"] == "valid"
    return {
        "status": "warn" if is_first else verdict["status"],
        "blame": ("server" if added[0]["check"] == "V7" else "host") if is_first else verdict["blame"],
        "reasons": [*verdict["reasons"], *added],
    }


def _own_reasons(record: CellRecord, setting: Setting) -> list[Json]:
    reasons = []
    if setting.cpu_plan.shared_cores:
        message = "shared_cores: the server and the load generator compete for the same cores"
        reasons.append(_reason("C19", "warn", message, True, False))
    if record.settled is not None and record.settled.disturbances:
        disturbed = " and ".join(record.settled.disturbances)
        message = f"the host was not quiet after {record.settled.waited_s:.0f} s, when this trial began: {disturbed}"
        longest_s = setting.experiment.procedure.settle_ns / NS_PER_S
        reasons.append(_reason("settle", "warn", message, round(record.settled.waited_s, 1), longest_s))
    if record.enforcement is not None and record.enforcement.not_enforced:
        missing = ", ".join(record.enforcement.not_enforced)
        message = f"not limited as asked: {missing} could not be enforced here"
        reasons.append(_reason("limits", "warn", message, missing, None))
    if record.load is not None and (delay_ns := _delayed_acknowledgement_ns(record.load)) is not None:
        message = (
            f"the body came {delay_ns / 1e6:.0f} ms after the head at the median: the pattern of a server that writes "
            "them apart without TCP_NODELAY, so that Nagle's algorithm waits for a delayed acknowledgement"
        )
        reasons.append(_reason("V7", "warn", message, delay_ns, DELAYED_ACKNOWLEDGEMENT_NS[0]))
    return reasons


def _delayed_acknowledgement_ns(load: Json) -> int | None:
    """How long the body of the median answer lagged behind its head, if that is as long as Linux delays an ACK."""
    first_byte, service = load["first_byte_ns"], load["service_time_ns"]
    if first_byte is None or service is None:
        return None
    delay_ns = int(service["quantiles"]["0.5"] - first_byte["quantiles"]["0.5"])
    least_ns, most_ns = DELAYED_ACKNOWLEDGEMENT_NS
    return delay_ns if least_ns <= delay_ns <= most_ns else None


def exit_code(summary: Json, *, thresholds_failed: bool = False) -> int:
    """The documented exit code: interrupted before failed server before invalid measurement before threshold."""
    again = {cell["id"] for cell in replaced(summary["cells"])}
    cells = [cell for cell in summary["cells"] if cell["id"] not in again]
    if summary["status"] == "interrupted":
        return EXIT_INTERRUPTED
    if any(_has_failed(cell) for cell in cells):
        return EXIT_SERVER
    if (summary.get("session") or {}).get("status") == "invalid":
        return EXIT_INVALID
    if any(cell["verdict"] is None or cell["verdict"]["status"] == "invalid" for cell in cells):
        return EXIT_INVALID
    return EXIT_THRESHOLD if thresholds_failed else EXIT_OK


def _has_failed(cell: Json) -> bool:
    """Whether the server failed, or answered nothing under load, so that it has no result that stands."""
    if cell["failure"] is not None:
        return bool(cell["verdict"]["blame"] == "server")
    outcomes = cell["outcomes"]
    return outcomes is not None and outcomes["scheduled"] > 0 and outcomes["ok"] == 0
