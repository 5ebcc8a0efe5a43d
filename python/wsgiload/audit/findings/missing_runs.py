"""Runs without a result, which become the worst result in a table that fills in 0."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from wsgiload.audit.run import Run, alarm
from wsgiload.documents.audit import AuditAlarm
from wsgiload.findings.finding import Finding
from wsgiload.report.words import format_count, format_per_s

Level = tuple[str, int | None, float | None]
MISSING_RUN = Finding(
    name="missing-run",
    examines="other tools' results: runs without any response",
    premise="No request got a response. A table that counts the missing "
    "result as 0 ranks the server last, although its result is unknown.",
    fix="repeat the run, or omit it and say so; a missing result is unknown, not 0",
)


def missing_runs(series: Sequence[Run], count: int) -> Iterator[tuple[Run, AuditAlarm]]:
    """Each run of a series without any response, unless ``failed-connections`` explains it and it
    is the only run of the audit; ``count`` is the number of runs."""
    for run in series:
        if run.figures.requests != 0 or (run.failures and count < 2):
            continue
        alike = [one for one in series if one.figures.requests and _level(one) == _level(run)]
        yield run, _alarm(run, [one.figures.achieved_per_s or 0.0 for one in alike], count)


def _level(run: Run) -> Level:
    return run.tool_name, run.figures.connections, run.figures.requested_per_s


def _alarm(run: Run, rates: Sequence[float], count: int) -> AuditAlarm:
    arithmetic = f"0 responses in this result (one of {format_count(count)} in the audit)"
    if rates:
        arithmetic = (
            f"mean of the {format_count(len(rates))} other results at this level: "
            f"{format_per_s(fmean(rates))}; with 0 for this one: "
            f"{format_per_s(fmean([*rates, 0.0]))}"
        )
    return alarm(
        MISSING_RUN,
        f"this run has no result ({run.tool_name} reports no response): scored as 0, it lowers "
        "means and ranks the server last",
        arithmetic=arithmetic,
        value=0,
        limit=1,
    )
