"""Builds a summary from the records of cells. Pure: it does not measure, write or print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from wsgiload.analysis.attempts import counted_attempts
from wsgiload.catalogue.names import ServerVariant
from wsgiload.documents.attribution_result import AttributionResult
from wsgiload.documents.cell_result import AppliedLimits, CellResult, ExitStatus, ServerSettings
from wsgiload.documents.load_report import ErrorBudget, NotChecked, Verdict
from wsgiload.documents.summary import ExperimentFacts, Summary
from wsgiload.errors import EXIT_INTERRUPTED, EXIT_INVALID, EXIT_OK, EXIT_SERVER, EXIT_THRESHOLD
from wsgiload.experiment.plan import Cell, Experiment, experiment_facts
from wsgiload.findings.alarms import ServerUse, alarms_of_cell
from wsgiload.findings.external_counts import check_external_counts, retransmissions
from wsgiload.findings.finding import Fired
from wsgiload.findings.trial import (
    Waits,
    contamination,
    failed_step,
    generator_wait,
    host_not_idle,
    ignored_stop_signal,
    missing_limits,
    missing_samples,
    shared_cores,
)
from wsgiload.host.cpus import CpuPlan
from wsgiload.loads.thresholds import of_orchestrator
from wsgiload.results.record import CellRecord, Setting
from wsgiload.sampling.resources import memory_growth
from wsgiload.units import NS_PER_S, duration_words

Status = Literal["complete", "interrupted", "failed"]

_SEVERITY = ("valid", "warn", "invalid")


@dataclass(frozen=True, slots=True)
class SweepProgress:
    """The progress of a sweep."""

    order: Sequence[Cell]
    records: Sequence[CellRecord]
    status: Status
    # Cells that were summarised earlier, by this sweep or by the interrupted run that it resumes.
    earlier: Sequence[CellResult] = ()


def summarise_sweep(
    variants: Mapping[str, ServerVariant], setting: Setting, progress: SweepProgress
) -> Summary:
    """The summary of the cells so far, without conclusions from several cells."""
    experiment = setting.experiment
    cells = [
        summarise_cell(record, variants[record.cell.server], setting) for record in progress.records
    ]

    return Summary(
        schema_version=1,
        status=progress.status,
        experiment=facts_of(experiment, tuple(variants), setting.cpu_plan),
        order=tuple(cell.id for cell in progress.order),
        seed=experiment.seed,
        cells=(*progress.earlier, *cells),
    )


def facts_of(
    experiment: Experiment, servers: tuple[str, ...], cpu_plan: CpuPlan
) -> ExperimentFacts:
    """The experiment in the form of a summary, with the cores of server and generator."""
    return msgspec.structs.replace(
        experiment_facts(experiment, servers),
        server_cpus=cpu_plan.server_cpus,
        client_cpus=cpu_plan.client_cpus,
    )


def summarise_cell(record: CellRecord, variant: ServerVariant, setting: Setting) -> CellResult:
    """One entry of ``cells``; None: not measured."""
    cell, load, experiment = record.cell, record.load, setting.experiment
    environment, settled = record.environment, record.settled
    planned = experiment.load_of(cell.level).warmed(variant.variant.warmup_s)

    return CellResult(
        id=cell.id,
        attempt=cell.attempt,
        server=variant.server.name,
        variant=variant.variant.name,
        alias=variant.alias,
        pinned_version=variant.server.pinned,
        profile=(variant.profile or experiment.profile)
        if variant.server.user_server is None
        else None,
        size=variant.size,
        app=experiment.served(variant.app).app,
        legacy=variant.server.legacy,
        version=environment.version if environment else None,
        python=environment.python_version if environment else None,
        rate=cell.level.rate_per_s,
        connections=cell.level.connections,
        run=cell.run,
        verdict=_verdict(record, variant, setting),
        rate_result=load.rate if load else None,
        outcomes=load.outcomes if load else None,
        response_time_ns=load.response_time_ns if load else None,
        service_time_ns=load.service_time_ns if load else None,
        send_lag_ns=load.send_lag_ns if load else None,
        connect_time_ns=load.connect_time_ns if load else None,
        offered_quantiles_ns=load.offered_quantiles_ns if load else None,
        uncertainty=load.uncertainty if load else None,
        limits=_limits(record, setting),
        resources=record.resources(),
        services=record.services_used(),
        server_exit=_server_exit(record),
        failure=record.failure,
        settings=_settings(record),
        error_budget_ns=_error_budgets(record),
        settled_s=settled.waited_s if settled is not None else None,
        disturbed_s=record.host.disturbed_s if record.host is not None else None,
        warmup_s=planned.warmup_ns_at(cell.level) / NS_PER_S,
        duration_s=planned.duration_ns / NS_PER_S,
        unhealthy_s=record.unhealthy_s(),
        keepalive_honoured=record.keepalive_honoured,
        not_checked=_not_checked(record, setting),
        external_counts=record.external.document() if record.external is not None else None,
        backlog=record.backlog,
        concurrency=record.concurrency,
        notes=(*record.notes, *_annotations(record)),
        attribution=record.attribution,
    )


def _settings(record: CellRecord) -> ServerSettings | None:
    """The settings with which the server was started, and the backlog and keep-alive that were
    observed."""
    if record.settings is None:
        return None
    keepalive = {None: None, True: "on", False: "off"}[record.keepalive_honoured]
    return msgspec.structs.replace(record.settings, backlog=record.backlog, keepalive=keepalive)


def _server_exit(record: CellRecord) -> ExitStatus | None:
    ended = record.server_exit
    if ended is None:
        return None
    return ExitStatus(
        code=ended.code, signal=ended.signal, clean=ended.clean, stopped_by=ended.stopped_by
    )


def _limits(record: CellRecord, setting: Setting) -> AppliedLimits | None:
    enforcement = record.enforcement
    if enforcement is None:
        return None
    return AppliedLimits(
        backend=enforcement.backend,
        cpus=setting.limits.cpus,
        memory_bytes=setting.limits.memory_bytes,
        pids=setting.limits.pids,
        server_cpus=tuple(setting.cpu_plan.server_cpus),
        client_cpus=tuple(setting.cpu_plan.client_cpus),
        read_back=dict(enforcement.read_back),
        not_enforced=tuple(enforcement.not_enforced),
    )


def _verdict(record: CellRecord, variant: ServerVariant, setting: Setting) -> Verdict | None:
    """The generator's verdict, extended by the orchestrator's reasons."""
    if record.failure is not None:
        failed = failed_step(record.failure, has_load=record.load is not None)
        return Verdict(status="invalid", blame=failed.blame, reasons=(failed.reason(),))
    if record.load is None:
        return None

    verdict = record.load.verdict
    added = _fired(record, variant, setting)
    reasons = (*verdict.reasons, *(one.reason() for one in added))

    # The most severe reason decides; among equals, the first. The generator's reasons come before
    # ours.
    worst = max(added, key=lambda one: _SEVERITY.index(one.level), default=None)
    if worst is None or _SEVERITY.index(worst.level) <= _SEVERITY.index(verdict.status):
        return msgspec.structs.replace(verdict, reasons=reasons)
    return Verdict(status=worst.level, blame=worst.blame, reasons=reasons)


def _fired(record: CellRecord, variant: ServerVariant, setting: Setting) -> list[Fired]:
    """The orchestrator's findings."""
    settle_s = setting.experiment.procedure.settle_ns / NS_PER_S
    fired = [
        shared_cores(setting.cpu_plan),
        host_not_idle(record.settled, settle_s),
        missing_limits(record.enforcement),
        contamination(_waits(record, record.attribution)) if record.attribution else None,
        missing_samples(record.load, record.samples, setting.experiment.sample_interval_ns),
        ignored_stop_signal(record.server_exit, record.settings, variant.server.name),
        *(one for one in _external_checks(record, setting) if isinstance(one, Fired)),
    ]
    if record.load is not None:
        fired += alarms_of_cell(record.load, _use(record, variant, setting))
    return [one for one in fired if one is not None]


def _waits(record: CellRecord, attribution: AttributionResult) -> Waits:
    return Waits(
        foreign_cpu=attribution.other_cpu_ratio,
        server=attribution.cpu_wait_ratio,
        generator=generator_wait(record.load),
        processes=record.processes,
        shares_cores=any(one.service.shares_server_cores for one in record.services),
    )


def _use(record: CellRecord, variant: ServerVariant, setting: Setting) -> ServerUse:
    resources = record.resources()
    requested = variant.requested_keepalive or setting.experiment.load.keepalive
    is_limited = record.enforcement is None or "cpus" not in record.enforcement.not_enforced
    return ServerUse(
        cpu_cores_mean=resources.cpu_cores_mean if resources else None,
        cpus=setting.limits.cpus if is_limited else None,
        refused_keepalive=requested != "off" and record.keepalive_honoured is False,
        memory_growth=memory_growth(
            record.samples, record.pss_before_bytes, record.pss_after_bytes
        ),
        cache=record.cache,
        memory_limit_bytes=setting.limits.memory_bytes,
        services=record.services_used(),
        cpu_wait=resources.psi_cpu_some_ratio if resources else None,
    )


def _external_checks(record: CellRecord, setting: Setting) -> list[Fired | NotChecked]:
    if record.load is None:
        return []
    thresholds = of_orchestrator(setting.experiment.load.check_thresholds)
    return check_external_counts(record.load, record.external, thresholds)


def _error_budgets(record: CellRecord) -> dict[str, ErrorBudget]:
    """The error budgets of the load, extended by the quantiles of the undisturbed seconds."""
    budgets = record.load.error_budget_ns if record.load is not None else {}
    if record.host is None:
        return budgets
    undisturbed = record.host.undisturbed_ns
    return {
        quantile: msgspec.structs.replace(budget, undisturbed=undisturbed.get(float(quantile)))
        for quantile, budget in budgets.items()
    }


def _annotations(record: CellRecord) -> list[str]:
    resent = retransmissions(record.external.tcp) if record.external is not None else None
    texts = (resent, _disturbance(record))
    return [text for text in texts if text is not None]


def _disturbance(record: CellRecord) -> str | None:
    """The time for which the host was disturbed, and p99 without that time."""
    if record.host is None or record.load is None or not record.host.disturbed_s:
        return None
    whole_s = record.load.measured_ns / NS_PER_S
    p99_ns = record.host.undisturbed_ns.get(0.99)
    rest = f"; p99 of the undisturbed seconds: {duration_words(p99_ns)}" if p99_ns else ""
    return (
        f"other processes or the hypervisor disturbed {record.host.disturbed_s:g} of {whole_s:g} s"
        f"{rest}"
    )


def _not_checked(record: CellRecord, setting: Setting) -> tuple[NotChecked, ...] | None:
    """The checks that neither the generator nor the orchestrator could perform; None if nothing was
    measured."""
    if record.load is None:
        return None
    of_orchestrator = [
        one for one in _external_checks(record, setting) if isinstance(one, NotChecked)
    ]
    return (*record.load.not_checked, *of_orchestrator)


def exit_code(
    summary: Summary, *, thresholds_failed: bool = False, thresholds_undecided: bool = False
) -> int:
    """The documented exit code: interrupted, then failed server, then invalid measurement or
    undecided threshold, then failed threshold."""
    if summary.status == "interrupted":
        return EXIT_INTERRUPTED
    cells = counted_attempts(summary.cells)
    if any(_has_failed(cell) for cell in cells):
        return EXIT_SERVER
    if summary.validity is not None and summary.validity.status == "invalid":
        return EXIT_INVALID
    if any(cell.verdict is None or cell.verdict.status == "invalid" for cell in cells):
        return EXIT_INVALID
    if thresholds_undecided:
        return EXIT_INVALID
    return EXIT_THRESHOLD if thresholds_failed else EXIT_OK


def _has_failed(cell: CellResult) -> bool:
    """Whether the server failed, or gave no correct response under load."""
    if cell.failure is not None:
        return cell.verdict is not None and cell.verdict.blame == "server"
    outcomes = cell.outcomes
    return outcomes is not None and outcomes.scheduled > 0 and outcomes.ok == 0
