"""Times whose resolution is too coarse for the reported values, such as bins of 1 ms."""

from __future__ import annotations

from wsgiload.audit.run import Run, alarm
from wsgiload.documents.audit import AuditAlarm
from wsgiload.findings.finding import Finding, percent
from wsgiload.report.words import format_duration_ns, format_ratio

# Half a step of the resolution, relative to the median.
MAX_ROUNDING = 0.1
COARSE_RESOLUTION = Finding(
    name="coarse-resolution",
    examines="other tools' results: the resolution of the response times, compared with the median",
    premise=f"The rounding error (half the resolution) is more than {percent(MAX_ROUNDING)} of "
    "the median, so servers with the same figure may differ severalfold.",
    fix="measure with a tool that records microseconds, such as `wsgiload load`",
)


def coarse_resolution(run: Run) -> AuditAlarm | None:
    """A median that the tool rounded by more than 10 %."""
    figures = run.figures
    median_ns, step_ns = figures.quantiles_ns.get("0.5"), figures.resolution_ns
    if median_ns is None or step_ns is None:
        return None
    half_ns = step_ns / 2
    if median_ns and half_ns / median_ns <= MAX_ROUNDING:
        return None

    rounding = half_ns / median_ns if median_ns else 1.0
    return alarm(
        COARSE_RESOLUTION,
        f"{run.tool_name} reports times in steps of {format_duration_ns(step_ns)}, too coarse "
        "for this median: servers with the same figure may differ severalfold",
        arithmetic=f"± {format_duration_ns(half_ns)} / median {format_duration_ns(median_ns)} = "
        f"± {format_ratio(rounding)} (at most {format_ratio(MAX_ROUNDING)})",
        value=rounding,
        limit=MAX_ROUNDING,
    )
