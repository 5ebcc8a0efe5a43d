"""Builds what a case of known truth looks like to the report: cells of a sweep, or one load; and
the text that a user reads first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.structs import replace

from tests.unit.filled import (
    distribution,
    filled_summary,
    limits,
    outcomes,
    rates,
    reason,
    resources,
    verdict,
)
from tests.unit.invented_cells import cell
from tests.unit.report_fixture import make_cell
from wsgiload.analysis.answered import is_unanswered
from wsgiload.analysis.over_cells import analyse
from wsgiload.analysis.recommend import recommend_capacity
from wsgiload.analysis.recommendations import recommendations
from wsgiload.attribution.evidence import Evidence
from wsgiload.attribution.fingerprints import find_fingerprints
from wsgiload.attribution.spans import Step
from wsgiload.capacity_search.result import ServerSearch, exit_code, server_result
from wsgiload.documents.attribution_result import AttributionResult, ExposureResult, ShareInterval
from wsgiload.documents.capacity import CapacityResult, ServerCapacity
from wsgiload.documents.cell_result import (
    CellFailure,
    CellResult,
    ServerSettings,
    Versions,
    server_of,
)
from wsgiload.documents.load_report import Bounds, LoadReport, Uncertainty
from wsgiload.findings.alarms import ServerUse, alarms_of_cell
from wsgiload.findings.trial import Waits, contamination
from wsgiload.procedures.capacity import SearchResult
from wsgiload.report.answer import with_answer
from wsgiload.report.capacity import capacity_screen
from wsgiload.report.first_screen import first_screen
from wsgiload.report.load_screen import load_screen
from wsgiload.statistics.crossing import Counted

MS = 1e6
WIDTH = 0.05
MIB = 1 << 20
SLO = ("p99<50ms",)
# Six runs that differ by a few percent, as is typical.
FACTORS = (0.97, 1.0, 1.03, 0.99, 1.02, 1.01)


@dataclass(frozen=True)
class Screen:
    """What a user reads first."""

    text: str
    warnings: Sequence[str] = ()
    command_of: str | None = None


def sweep(cells: Sequence[CellResult], **facts: Any) -> Screen:
    """The first screen of a sweep with these cells."""
    cells = [replace(one, settings=one.settings or settings()) for one in cells]
    defaults = {
        "runs": max(one.run for one in cells),
        "servers": tuple(dict.fromkeys(server_of(one) for one in cells)),
        "rates": tuple(sorted({one.rate for one in cells if one.rate is not None})) or None,
        "cpus": 1.0,
        "duration_s": 20.0,
    }
    summary = with_answer(analyse(filled_summary(defaults | facts, cells)))
    shown = first_screen(summary)
    end = "\nexit code 98: no answer" if is_unanswered(summary) else ""
    return Screen(shown.markdown + end, shown.cautions, shown.command_of)


def load(report: LoadReport) -> Screen:
    """The first screen of one load."""
    shown = load_screen(report)
    return Screen(shown.markdown, shown.cautions)


def search(*servers: ServerCapacity) -> Screen:
    """The first screen of a capacity search with these results."""
    document = CapacityResult(
        schema_version=1,
        status="complete",
        slo=SLO,
        arrivals="poisson",
        keepalive="on",
        budget_s=240.0,
        width=WIDTH,
        url=None,
        servers=servers,
        recommendations=recommendations(servers, recommend_capacity, SLO)
        if len(servers) > 1
        else (),
        run_dir="run",
    )
    shown = capacity_screen(document, None)
    end = "\nexit code 98: no answer" if exit_code("complete", servers) == 98 else ""
    return Screen(shown.markdown + end, shown.cautions, shown.command_of)


def searched(server: str, lowest_per_s: float | None) -> ServerCapacity:
    """The result of a search that missed the objective in all trials (None), or that became invalid
    after a trial at this rate had met it."""
    missed = Counted(102.0, 1_000, 100, 0.01, 3.0)
    if lowest_per_s is None:
        return server_result(ServerSearch(server, result=SearchResult((missed,))), WIDTH)
    met = Counted(lowest_per_s, 1_000, 1, 0.01, 0.5)
    search = ServerSearch(server, result=SearchResult((met, missed), is_abandoned=True))
    search.abandoned = ("host", "no conclusive result at 101/s in 4 trials")
    return server_result(search, WIDTH)


def canned(
    scheduled: int = 20_000, ok: float = 1.0, kind: str = "http_status", **changes: Any
) -> LoadReport:
    """The report of a load of which the share ``ok`` of the requests succeeded; the others had this
    outcome."""
    report = msgspec.convert(make_cell("waitress", 1000, 1)[1], LoadReport)
    succeeded = round(ok * scheduled)
    high = 5_000_000 if ok > 0.99 else None
    bounds = {key: Bounds(low=4_000_000, high=high) for key in ("0.5", "0.9", "0.99")}
    known = {
        "outcomes": outcomes(scheduled, succeeded, **{kind: scheduled - succeeded}),
        "rate": rates(1000.0 * ok, offered_per_s=1000.0, sent_per_s=1000.0, achieved_per_s=1000.0),
        "offered_quantiles_ns": bounds,
        "uncertainty": Uncertainty(offered_quantiles_ns={}, response_time_ns={}),
        "measured_ns": 20 * 10**9,
    }
    return replace(report, **(known | changes))


def trial(
    server: str,
    p99_ms: float | None = 5.0,
    *,
    rate: float = 1000.0,
    run: int = 1,
    ok: float = 1.0,
    used: Mapping[str, Any] | None = None,
    **changes: Any,
) -> CellResult:
    """One trial in which the share ``ok`` of the requests succeeded; the others got a 503."""
    scheduled = round(20 * rate)
    succeeded = round(ok * scheduled)
    plain = {
        "rate": rate,
        "outcomes": outcomes(scheduled, succeeded, http_status=scheduled - succeeded),
        "rate_result": rates(rate * ok, offered_per_s=rate, achieved_per_s=rate),
        "resources": resources(
            **({"cpu_cores_mean": 0.3, "memory_peak_bytes": 64 * MIB} | dict(used or {}))
        ),
        "limits": limits(cpus=1.0, memory_bytes=512 * MIB),
    }
    return cell(server, run, None if p99_ms is None else p99_ms * MS, **(plain | changes))


def six_runs(server: str, p99_ms: float, **changes: Any) -> list[CellResult]:
    """Six trials with typical variation."""
    return [
        trial(server, p99_ms * factor, run=run, **changes)
        for run, factor in enumerate(FACTORS, start=1)
    ]


def working(
    server: str,
    *,
    rate: float,
    service_ms: float,
    cpu_ms: float,
    at_once: tuple[int, int] | None,
    **changes: Any,
) -> CellResult:
    """A server whose requests take this long, of which it computes this long, in workers ×
    threads."""
    workers, threads = at_once or (None, None)
    return trial(
        server,
        3 * service_ms,
        rate=rate,
        service_time_ns=distribution(mean=service_ms * MS),
        settings=settings(workers, threads),
        used={"cpu_cores_mean": rate * cpu_ms / 1000, "cpu_ns_per_request": cpu_ms * MS},
        **changes,
    )


def settings(workers: int | None = None, threads: int | None = None) -> ServerSettings:
    """The settings of a server with this many workers and threads."""
    return ServerSettings(
        command=("serve", "app:app"),
        workers=workers,
        threads=threads,
        backlog=None,
        keepalive=None,
        environment={},
        versions=Versions(server=None, python=None, packages={}),
    )


def failed(server: str, step: str, message: str, **changes: Any) -> CellResult:
    """A trial in which the server failed."""
    return trial(
        server,
        outcomes=None,
        offered_quantiles_ns=None,
        rate_result=None,
        failure=CellFailure(step=step, message=message, log_tail=""),
        verdict=verdict("invalid", "server", reason("failure", "invalid", message)),
        **changes,
    )


def provoked(
    load: LoadReport | None = None,
    use: ServerUse | None = None,
    evidence: Evidence | None = None,
    exposure: ExposureResult | None = None,
    waits: Waits | None = None,
) -> dict[str, Any]:
    """What the findings and the fingerprints find in this load, use, evidence and these waits."""
    alarms = alarms_of_cell(load or canned(), use or ServerUse(0.3, 1.0))
    if waits is not None and (fired := contamination(waits)) is not None:
        alarms.append(fired)
    found = verdict("warn" if alarms else "valid", None, *(alarm.reason() for alarm in alarms))
    attribution = AttributionResult(
        slowest=200,
        slowest_ratio=0.01,
        resolution_ns=100_000_000,
        exposures=() if exposure is None else (exposure,),
        fingerprints=tuple(find_fingerprints(evidence or Evidence())),
        worker_imbalance=None,
        other_cpu_ratio=None,
        cpu_wait_ratio=None,
    )
    return {"verdict": found, "attribution": attribution}


def exposure(event: Any, slowest: float, every: float) -> ExposureResult:
    """This share of the slowest requests, and of all, overlapped such an event."""

    def share(value: float) -> ShareInterval:
        return ShareInterval(value=value, low=value, high=value)

    return ExposureResult(event=event, slowest=share(slowest), all=share(every), risk_ratio=None)


def steps(*abnormal: Mapping[str, int], count: int = 50) -> list[Step]:
    """Steps of 0.1 s in which the server used half a core, the first ones with these changes."""
    normal = {
        "cpu_usage_ns": 50_000_000,
        "nr_periods": 1,
        "nr_throttled": 0,
        "psi_cpu_some_ns": 0,
        "psi_cpu_full_ns": 0,
        "psi_memory_some_ns": 0,
        "queue_before": 0,
        "queue_after": 0,
    }
    changes = [*abnormal, *([{}] * (count - len(abnormal)))]
    step_ns = 100_000_000
    return [
        Step(place * step_ns, (place + 1) * step_ns, **(normal | dict(change)))
        for place, change in enumerate(changes)
    ]
