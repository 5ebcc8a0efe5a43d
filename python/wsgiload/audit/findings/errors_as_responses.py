"""Failed requests among the response times."""

from __future__ import annotations

from wsgiload.audit.run import Run, alarm, kinds_of
from wsgiload.documents.audit import AuditAlarm
from wsgiload.findings.finding import Finding, percent
from wsgiload.report.words import format_count, format_ratio

MAX_SHARE = 0.001
ERRORS_AS_RESPONSES = Finding(
    name="errors-as-responses",
    examines="other tools' results: failed requests that the tool counts as responses",
    premise=f"More than {percent(MAX_SHARE)} of the requests failed. Errors are often faster than "
    "correct responses, so throughput and times look better than they are.",
    fix="compare goodput and the times of correct responses: `wsgiload load` counts a failed "
    "request as infinitely slow",
)


def errors_as_responses(run: Run) -> AuditAlarm | None:
    """Errors whose times count like those of correct responses."""
    figures, tool = run.figures, run.tool
    timed = figures.requests if figures.timed_requests is None else figures.timed_requests
    if not timed or not figures.requests:
        return None
    counted = {kind: n for kind, n in figures.errors.items() if kind in tool.timed_errors}
    failed = sum(counted.values())
    if failed <= MAX_SHARE * timed:
        return None

    is_length = set(counted) == {"body"} and tool.name == "ab"
    hint = "; if only the length varies, which ab counts as a failure, add -l" if is_length else ""
    return alarm(
        ERRORS_AS_RESPONSES,
        f"{tool.name} counts {format_count(failed)} failed requests as responses: errors are "
        "often faster, so throughput and times look better than they are",
        arithmetic=f"{format_count(failed)} failed ({kinds_of(counted)}) / "
        f"{format_count(timed)} requests = {format_ratio(failed / timed)} "
        f"(at most {format_ratio(MAX_SHARE)})",
        fix=f"{ERRORS_AS_RESPONSES.fix}{hint}",
        value=failed / timed,
        limit=MAX_SHARE,
    )
