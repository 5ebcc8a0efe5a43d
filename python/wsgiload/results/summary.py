"""Turns the records of cells into summary.json. Pure: it measures, writes and prints nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from wsgiload.analysis.alarms import ServerUse, alarms_of_cell
from wsgiload.analysis.ground_truth import Finding, NotChecked, check_outside, retransmissions
from wsgiload.analysis.over_cells import last_attempts
from wsgiload.catalogue.names import ServerVariant
from wsgiload.documents.codec import plain_reason
from wsgiload.errors import EXIT_INTERRUPTED, EXIT_INVALID, EXIT_OK, EXIT_SERVER, EXIT_THRESHOLD
from wsgiload.experiment.plan import Cell, experiment_facts
from wsgiload.loads.thresholds import of_orchestrator
from wsgiload.results.record import CellRecord, Setting
from wsgiload.units import NS_PER_S

Json = dict[str, Any]
Status = Literal["complete", "interrupted", "failed"]

_GRAVITY = ("valid", "warn", "invalid")
_DISTRIBUTIONS = ("response_time_ns", "service_time_ns", "send_lag_ns", "connect_time_ns")


@dataclass(frozen=True, slots=True)
class Progress:
    """A sweep as far as it has come."""

    order: Sequence[Cell]
    records: Sequence[CellRecord]
    status: Status
    # Cells that were summarised before: of this sweep, or of the interrupted run that it resumes.
    earlier: Sequence[Json] = ()


def summarise_sweep(
    found: Mapping[str, ServerVariant], setting: Setting, progress: Progress
) -> Json:
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
            *(
                summarise_cell(record, found[record.cell.server], setting)
                for record in progress.records
            ),
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
        "app": setting.experiment.served(found.app).app,
        "legacy": found.server.legacy,
        "version": environment.version if environment else None,
        "python": environment.python_version if environment else None,
        "rate": cell.level.rate_per_s,
        "connections": cell.level.connections,
        "run": cell.run,
        "verdict": _verdict(record, found, setting),
        "rate_result": load["rate"] if load else None,
        "outcomes": load["outcomes"] if load else None,
        **{name: load[name] if load else None for name in _DISTRIBUTIONS},
        "offered_quantiles_ns": load["offered_quantiles_ns"] if load else None,
        "uncertainty": load["uncertainty"] if load else None,
        "limits": _limits(record, setting),
        "resources": resources.to_dict() if resources else None,
        "server_exit": {"code": ended.code, "signal": ended.signal, "clean": ended.clean}
        if ended
        else None,
        "failure": _failure(record),
        "settled_s": record.settled.waited_s if record.settled is not None else None,
        "warmup_s": 0.0
        if found.variant.cold
        else setting.experiment.load.warmup_ns_at(cell.level) / NS_PER_S,
        "duration_s": setting.experiment.load.duration_ns / NS_PER_S,
        "unhealthy_s": record.unhealthy_s(),
        "keepalive_honoured": record.keepalive_honoured,
        "not_checked": _not_checked(record, setting),
        "external_counts": record.outside.to_dict() if record.outside is not None else None,
        "backlog": record.backlog,
        "concurrency": record.capacity.to_dict() if record.capacity is not None else None,
        "notes": [*record.notes, *_annotations(record)],
        "attribution": record.attribution.to_dict() if record.attribution is not None else None,
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


def _verdict(record: CellRecord, found: ServerVariant, setting: Setting) -> Json | None:
    """The generator's verdict, with what only the orchestrator can know."""
    if record.failure is not None:
        reason = plain_reason("failure", "invalid", record.failure.message, 1, 0)
        without_load = "client" if record.load is None else "server"
        blame = {"load": without_load, "limits": "host"}.get(record.failure.step, "server")
        return {"status": "invalid", "blame": blame, "reasons": [reason]}
    if record.load is None:
        return None
    verdict = record.load["verdict"]
    added = _own_reasons(record, found, setting)
    # The gravest decides, and of equally grave ones the first; the generator's come before ours.
    gravest = max(added, key=lambda entry: _GRAVITY.index(entry[1]["level"]), default=None)
    status, blame = verdict["status"], verdict["blame"]
    if gravest is not None and _GRAVITY.index(gravest[1]["level"]) > _GRAVITY.index(status):
        status, blame = gravest[1]["level"], gravest[0]
    return {
        "status": status,
        "blame": blame,
        "reasons": [*verdict["reasons"], *(reason for _, reason in added)],
    }


def _own_reasons(
    record: CellRecord, found: ServerVariant, setting: Setting
) -> list[tuple[str, Json]]:
    """Each with whose doing it is."""
    reasons: list[tuple[str, Json]] = []
    if setting.cpu_plan.shared_cores:
        message = "server and load generator share cores"
        reasons.append(("host", plain_reason("shared-cores", "warn", message, True, False)))
    if record.settled is not None and record.settled.disturbances:
        disturbed = " and ".join(record.settled.disturbances)
        message = (
            f"the host was not quiet after {record.settled.waited_s:.0f} s, when this "
            f"trial began: {disturbed}"
        )
        longest_s = setting.experiment.procedure.settle_ns / NS_PER_S
        reasons.append(
            (
                "host",
                plain_reason(
                    "settle", "warn", message, round(record.settled.waited_s, 1), longest_s
                ),
            )
        )
    if record.enforcement is not None and record.enforcement.not_enforced:
        missing = ", ".join(record.enforcement.not_enforced)
        message = f"limits not enforced: {missing}"
        reasons.append(("host", plain_reason("limits", "warn", message, missing, None)))
    reasons += [("host", reason) for reason in _contamination(record)]
    outside = [one for one in _looked_outside(record, setting) if isinstance(one, Finding)]
    reasons += [(one.blame, one.reason()) for one in outside]
    if record.load is not None:
        use = _use(record, found, setting)
        reasons += [(alarm.blame, alarm.reason()) for alarm in alarms_of_cell(record.load, use)]
    return reasons


def _use(record: CellRecord, found: ServerVariant, setting: Setting) -> ServerUse:
    resources = record.resources()
    asked = setting.experiment.load.keepalive if found.keepalive is None else found.keepalive
    is_limited = record.enforcement is None or "cpus" not in record.enforcement.not_enforced
    return ServerUse(
        cpu_cores_mean=resources.cpu_cores_mean if resources else None,
        cpus=setting.limits.cpus if is_limited else None,
        refused_keepalive=asked != "off" and record.keepalive_honoured is False,
    )


def _looked_outside(record: CellRecord, setting: Setting) -> list[Finding | NotChecked]:
    if record.load is None:
        return []
    return check_outside(
        record.load, record.outside, of_orchestrator(setting.experiment.load.check_thresholds)
    )


def _annotations(record: CellRecord) -> list[str]:
    again = retransmissions(record.outside.tcp) if record.outside is not None else None
    return [again] if again is not None else []


def _not_checked(record: CellRecord, setting: Setting) -> list[Json] | None:
    """What neither the generator nor the orchestrator could look at; None where nothing was
    measured."""
    if record.load is None:
        return None
    own = [
        found.to_dict()
        for found in _looked_outside(record, setting)
        if isinstance(found, NotChecked)
    ]
    return [*record.load["not_checked"], *own]


# Shares beyond which a measurement says more of the host than of the server.
MOST_FOREIGN_CPU, MOST_CPU_WAIT = 0.10, 0.05


def _contamination(record: CellRecord) -> list[Json]:
    """Whether others had the machine while this cell was measured."""
    found = record.attribution
    if found is None:
        return []
    foreign, waited = found.foreign_cpu_ratio, found.cpu_wait_ratio
    if foreign is not None and foreign > MOST_FOREIGN_CPU:
        message = (
            f"other processes used {foreign:.0%} of the machine's CPU time; repeat it on "
            "an idle machine"
        )
        return [plain_reason("contaminated", "warn", message, round(foreign, 4), MOST_FOREIGN_CPU)]
    if waited is not None and waited > MOST_CPU_WAIT:
        message = (
            f"for {waited:.0%} of the time the server waited for a core that others had, its "
            "own limit apart; "
            "repeat it on an idle machine"
        )
        return [plain_reason("contaminated", "warn", message, round(waited, 4), MOST_CPU_WAIT)]
    return []


def exit_code(summary: Json, *, thresholds_failed: bool = False) -> int:
    """The documented exit code: interrupted before failed server before invalid measurement before
    threshold."""
    cells = last_attempts(summary["cells"])
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
    """Whether the server failed, or answered nothing under load, so that it has no result that
    stands."""
    if cell["failure"] is not None:
        return bool(cell["verdict"]["blame"] == "server")
    outcomes = cell["outcomes"]
    return outcomes is not None and outcomes["scheduled"] > 0 and outcomes["ok"] == 0
