"""Builds a summary from the records of cells. Pure: it does not measure, write or print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import msgspec

from wsgiload.analysis.alarms import ServerUse, alarms_of_cell
from wsgiload.analysis.attempts import counted_attempts
from wsgiload.analysis.ground_truth import Finding, check_external_counts, retransmissions
from wsgiload.analysis.races import after_qualifying
from wsgiload.catalogue.names import ServerVariant
from wsgiload.documents.cell_result import AppliedLimits, CellResult, ExitStatus, ServerSettings
from wsgiload.documents.experiment_facts import ExperimentFacts
from wsgiload.documents.load_report import Blame, ErrorBudget, NotChecked, Reason, Verdict
from wsgiload.documents.summary import Summary
from wsgiload.errors import EXIT_INTERRUPTED, EXIT_INVALID, EXIT_OK, EXIT_SERVER, EXIT_THRESHOLD
from wsgiload.experiment.plan import Cell, Experiment, experiment_facts
from wsgiload.host.cpus import CpuPlan
from wsgiload.loads.thresholds import of_orchestrator
from wsgiload.results.reasons import BlamedReason, reason_of
from wsgiload.results.record import CellRecord, Setting
from wsgiload.sampling.memory_growth import memory_growth
from wsgiload.sampling.processes import ProcessUsage
from wsgiload.sampling.resources import measured_window
from wsgiload.units import NS_PER_S, duration_words

Status = Literal["complete", "interrupted", "failed"]

_SEVERITY = ("valid", "warn", "invalid")
_REPEAT = "repeat on an idle machine"
# Above these shares, a measurement describes the host rather than the server.
MAX_FOREIGN_CPU, MAX_CPU_WAIT = 0.10, 0.05
# A busy host delays single samples by less.
MAX_SAMPLE_GAP_NS = NS_PER_S


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
    is_cold = variant.variant.cold
    planned = experiment.load_of(cell.run, cell.level)
    warmup_ns = 0 if is_cold else planned.warmup_ns_at(cell.level)

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
        warmup_s=warmup_ns / NS_PER_S,
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
    return ExitStatus(code=ended.code, signal=ended.signal, clean=ended.clean)


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
        return _verdict_of_failure(record, record.failure.step, record.failure.message)
    if record.load is None:
        return None

    verdict = record.load.verdict
    added = _orchestrator_reasons(record, variant, setting)
    reasons = (*verdict.reasons, *(reason for _, reason in added))

    # The most severe reason decides; among equals, the first. The generator's reasons come before
    # ours.
    worst = max(added, key=lambda entry: _SEVERITY.index(entry[1].level), default=None)
    if worst is None or _SEVERITY.index(worst[1].level) <= _SEVERITY.index(verdict.status):
        return msgspec.structs.replace(verdict, reasons=reasons)
    blame, reason = worst
    return Verdict(status=reason.level, blame=blame, reasons=reasons)


def _verdict_of_failure(record: CellRecord, step: str, message: str) -> Verdict:
    without_load: Blame = "client" if record.load is None else "server"
    blames: dict[str, Blame] = {"load": without_load, "limits": "host"}
    reason = reason_of("failure", "invalid", message, 1, 0)
    return Verdict(status="invalid", blame=blames.get(step, "server"), reasons=(reason,))


def _orchestrator_reasons(
    record: CellRecord, variant: ServerVariant, setting: Setting
) -> list[BlamedReason]:
    """The orchestrator's reasons, each with its blame."""
    of_host = [
        _shared_cores(setting),
        _unsettled(record, setting),
        _missing_limits(record),
        _contamination(record),
        _missing_samples(record, setting),
    ]
    reasons: list[BlamedReason] = [("host", reason) for reason in of_host if reason is not None]

    external = [one for one in _external_checks(record, setting) if isinstance(one, Finding)]
    reasons += [(one.blame, one.reason()) for one in external]
    if record.load is not None:
        use = _use(record, variant, setting)
        reasons += [(alarm.blame, alarm.reason()) for alarm in alarms_of_cell(record.load, use)]
    return reasons


def _shared_cores(setting: Setting) -> Reason | None:
    if not setting.cpu_plan.shared_cores:
        return None
    return reason_of("shared-cores", "warn", "server and load generator share cores", True, False)


def _unsettled(record: CellRecord, setting: Setting) -> Reason | None:
    settled = record.settled
    if settled is None or not settled.disturbances:
        return None
    message = (
        f"the host was not idle when this trial began (waited {settled.waited_s:.0f} s): "
        f"{' and '.join(settled.disturbances)}"
    )
    limit_s = setting.experiment.procedure.settle_ns / NS_PER_S
    return reason_of("host-not-idle", "warn", message, round(settled.waited_s, 1), limit_s)


def _missing_limits(record: CellRecord) -> Reason | None:
    if record.enforcement is None or not record.enforcement.not_enforced:
        return None
    missing = ", ".join(record.enforcement.not_enforced)
    return reason_of("limits", "warn", f"limits not enforced: {missing}", missing, None)


def _contamination(record: CellRecord) -> Reason | None:
    """The reason if other processes kept the server or the generator waiting for a core. CPU time
    that others used while nobody waited has no effect; without a known effect, the message says
    so."""
    attribution = record.attribution
    if attribution is None:
        return None

    foreign, waited = attribution.other_cpu_ratio, attribution.cpu_wait_ratio
    is_busy = foreign is not None and foreign > MAX_FOREIGN_CPU
    shares = any(one.service.shares_server_cores for one in record.services)
    if is_busy and waited is None:
        waited = _run_queue_wait(record.processes)
    waits = {"server": waited, "generator": _generator_wait(record)}
    if is_busy and waited is None:
        message = f"{_used(foreign)}; whether the server waited for them is unknown"
        return reason_of("contaminated", "warn", message, foreign, MAX_FOREIGN_CPU, _REPEAT)

    name, share = max(
        ((name, share) for name, share in waits.items() if share is not None),
        key=lambda entry: entry[1],
        default=("", 0.0),
    )
    if share <= MAX_CPU_WAIT or not (is_busy or (name == "server" and not shares)):
        return None
    message = f"the {name} waited {100 * share:.0f} % of the time for a core"
    message += f", while {_used(foreign)}" if is_busy else " that other processes used"
    return reason_of("contaminated", "warn", message, round(share, 4), MAX_CPU_WAIT, _REPEAT)


def _used(foreign: float | None) -> str:
    return f"other processes used {100 * (foreign or 0.0):.0f} % of the machine's CPU time"


def _run_queue_wait(processes: Sequence[ProcessUsage]) -> float | None:
    """The time for which the server's threads were runnable without a core, as a share of the
    observed time; None if it was not observed. Includes waits for each other and throttling."""
    times = [one.t_ns for one in processes]
    if not times or max(times) == min(times):
        return None
    waits: dict[int, list[int]] = {}
    for one in processes:
        waits.setdefault(one.pid, []).append(one.run_queue_wait_ns)
    waited_ns = sum(max(of_one) - min(of_one) for of_one in waits.values())
    return waited_ns / (max(times) - min(times))


def _generator_wait(record: CellRecord) -> float | None:
    client = record.load.client if record.load is not None else None
    if record.load is None or client is None or client.run_queue_wait_ns is None:
        return None
    return client.run_queue_wait_ns / record.load.measured_ns if record.load.measured_ns else None


def _missing_samples(record: CellRecord, setting: Setting) -> Reason | None:
    """The reason if the resources were not sampled for a part of the measurement. The thread that
    samples has nothing else to do, so it was stopped together with wsgiload, or starved."""
    if record.load is None or not record.samples:
        return None
    start_ns, end_ns = measured_window(record.load)[0]
    interval_ns = setting.experiment.sample_interval_ns
    times = [
        start_ns,
        *(one.t_ns for one in record.samples if start_ns < one.t_ns < end_ns),
        end_ns,
    ]
    longest_ns = max(later - earlier for earlier, later in pairwise(times))
    if longest_ns <= max(MAX_SAMPLE_GAP_NS, 10 * interval_ns):
        return None
    seconds = longest_ns / NS_PER_S
    message = (
        f"no resources were sampled for {seconds:.1f} s, because wsgiload itself was stopped or "
        "got no CPU time"
    )
    limit_s = MAX_SAMPLE_GAP_NS / NS_PER_S
    return reason_of("missing-samples", "warn", message, round(seconds, 1), limit_s, _REPEAT)


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
    )


def _external_checks(record: CellRecord, setting: Setting) -> list[Finding | NotChecked]:
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
    # Short trials only qualify servers for a race, but a failure in one counts.
    broken = [cell for cell in counted_attempts(summary.cells) if cell.failure is not None]
    cells = counted_attempts(after_qualifying(summary.cells, summary.experiment))
    if any(_has_failed(cell) for cell in (*broken, *cells)):
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
