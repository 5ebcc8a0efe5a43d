"""Represents a load on a server that wsgiload does not control as a cell of a summary. Pure."""

from __future__ import annotations

from wsgiload.documents.cell_result import AppliedLimits, CellResult
from wsgiload.documents.load_report import AttachedResources, LoadReport
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
