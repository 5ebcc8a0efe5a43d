"""One load on a server that wsgiload does not control, as a cell of a summary; when the load is
repeated, which attempt is reported, and their maximum duration. Pure.

The rules are those of a sweep's trials (``analysis.attempts``): they depend on the generator and
the host, never on the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from wsgiload.analysis.attempts import counted_attempt, is_discarded, is_disturbed, reason_of_repeat
from wsgiload.attribution.host_disturbance import HostSeconds
from wsgiload.doctor.settle import WATCH_NS
from wsgiload.documents.cell_result import AppliedLimits, CellResult
from wsgiload.documents.load_plan import LoadPlan
from wsgiload.documents.load_report import AttachedResources, LoadAttempt, LoadReport
from wsgiload.experiment.procedure import SETTLE_BEFORE_RERUN_NS
from wsgiload.sampling.sampler import Sample
from wsgiload.units import NS_PER_S


def cell_of_load(report: LoadReport, name: str, *, server: str = "url", run: int = 1) -> CellResult:
    """The cell with the identifier ``name``; unknown values are None."""
    phases, load = report.plan.phases, report.plan.load
    attached = report.resources
    rate = load.open.rate_per_s if load.open is not None else None
    if load.open is not None and rate is None:
        rate = report.rate.offered_per_s
    return CellResult(
        id=name,
        server=server,
        variant=None,
        version=None,
        python=None,
        rate=rate,
        connections=load.closed.connections if load.closed is not None else None,
        run=run,
        verdict=report.verdict,
        rate_result=report.rate,
        outcomes=report.outcomes,
        response_time_ns=report.response_time_ns,
        service_time_ns=report.service_time_ns,
        send_lag_ns=report.send_lag_ns,
        connect_time_ns=report.connect_time_ns,
        offered_quantiles_ns=report.offered_quantiles_ns,
        uncertainty=report.uncertainty,
        limits=None if attached is None else _limits(attached),
        resources=None if attached is None else attached.used,
        server_exit=None,
        failure=None,
        warmup_s=phases.warmup_ns / NS_PER_S,
        duration_s=phases.measure_ns / NS_PER_S,
        keepalive_honoured=None,
        not_checked=report.not_checked,
        notes=(),
    )


def _limits(attached: AttachedResources) -> AppliedLimits:
    """The limits already in force. wsgiload sets none on an attached server."""
    memory_bytes = attached.effective_memory_bytes
    return AppliedLimits(
        backend="none" if attached.source == "processes" else attached.source,
        cpus=attached.effective_cpus,
        memory_bytes=None if memory_bytes is None else round(memory_bytes),
        pids=None,
        server_cpus=None,
        client_cpus=None,
        read_back={},
        not_enforced=(),
    )


# Waiting for a quiet host ends with one more check after the time limit.
WAIT_NS = SETTLE_BEFORE_RERUN_NS + WATCH_NS


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt: its report, and the samples of the server."""

    report: LoadReport
    cell: CellResult
    samples: Sequence[Sample] = ()

    @property
    def is_interrupted(self) -> bool:
        """Whether the load was interrupted."""
        return any(reason.check == "interrupted" for reason in self.report.verdict.reasons)

    @property
    def disturbance(self) -> str | None:
        """Why the load should be repeated; None if it should not."""
        needs_rerun = is_discarded(self.cell) or is_disturbed(self.cell)
        return reason_of_repeat(self.cell) if needs_rerun else None

    def document(self, *, is_reported: bool) -> LoadAttempt:
        """The attempt's entry in the report."""
        times = self.report.response_time_ns
        return LoadAttempt(
            reported=is_reported,
            status=self.report.verdict.status,
            rerun_reason=self.disturbance,
            disturbed_s=self.cell.disturbed_s,
            goodput_per_s=self.report.rate.goodput_per_s,
            p99_ns=times.quantiles.get("0.99") if times is not None else None,
        )


def attempt_of(
    report: LoadReport, number: int, host: HostSeconds | None, samples: Sequence[Sample] = ()
) -> Attempt:
    """The attempt with this number, starting at 1."""
    cell = msgspec.structs.replace(
        cell_of_load(report, "load" if number == 1 else f"load.{number}"),
        attempt=number,
        duration_s=report.measured_ns / NS_PER_S,  # --requests may end it early
        disturbed_s=host.disturbed_s if host is not None else None,
    )
    return Attempt(report, cell, samples)


def needs_repeat(attempts: Sequence[Attempt]) -> bool:
    """Whether the best attempt so far is invalid or disturbed."""
    return _best(attempts).disturbance is not None


def reported(attempts: Sequence[Attempt]) -> Attempt:
    """The attempt to report; its report lists all attempts."""
    best = _best(attempts)
    entries = tuple(one.document(is_reported=one is best) for one in attempts)
    return Attempt(msgspec.structs.replace(best.report, attempts=entries), best.cell, best.samples)


def _best(attempts: Sequence[Attempt]) -> Attempt:
    """The least disturbed attempt; an interrupted one only if there is no other."""
    completed = [one for one in attempts if not one.is_interrupted] or list(attempts)
    counted = counted_attempt([one.cell for one in completed])
    return next(one for one in completed if one.cell is counted)


def max_duration_s(plan: LoadPlan, reruns: int) -> float:
    """The maximum duration of the load in seconds, with this many reruns."""
    phases = plan.phases
    measure_ns = phases.measure_ns if plan.precision is None else plan.precision.max_duration_ns
    load_ns = phases.warmup_ns + measure_ns + phases.cooldown_ns + plan.timeout_ns
    return ((1 + reruns) * load_ns + reruns * WAIT_NS) / NS_PER_S
