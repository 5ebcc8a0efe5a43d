"""Failed requests among the response times."""

from __future__ import annotations

from wsgiload.audit.run import Run, alarm, kinds_of
from wsgiload.documents.audit import AuditAlarm
from wsgiload.report.words import format_count, format_ratio

MAX_SHARE = 0.001


def errors_as_responses(run: Run) -> AuditAlarm | None:
    """Errors whose times count like those of correct responses."""
    figures, tool = run.figures, run.tool
    timed = figures.requests if figures.timed_requests is None else figures.timed_requests
    if tool is None or not timed or not figures.requests:
        return None
    counted = {kind: n for kind, n in figures.errors.items() if kind in tool.timed_errors}
    failed = sum(counted.values())
    if failed <= MAX_SHARE * timed:
        return None

    is_length = set(counted) == {"body"} and tool.name == "ab"
    hint = "; if only the length varies, which ab counts as a failure, add -l" if is_length else ""
    return alarm(
        "errors-as-responses",
        f"{tool.name} counts {format_count(failed)} failed requests as responses: errors are "
        "often faster, so throughput and times look better than they are",
        arithmetic=f"{format_count(failed)} failed ({kinds_of(counted)}) / "
        f"{format_count(timed)} requests = {format_ratio(failed / timed)} "
        f"(at most {format_ratio(MAX_SHARE)})",
        fix="compare goodput and the times of correct responses: `wsgiload load` counts a failed "
        f"request as infinitely slow{hint}",
        value=failed / timed,
        limit=MAX_SHARE,
    )
