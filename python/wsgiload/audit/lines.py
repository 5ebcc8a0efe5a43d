"""An audit as text."""

from __future__ import annotations

from collections.abc import Iterator

from wsgiload.documents.audit import AuditedRun, AuditReport, Figures
from wsgiload.report.words import (
    format_duration_ns,
    format_per_s,
    plural,
    quantile_name,
)

# The usually quoted quantiles.
_SHOWN_QUANTILES = ("0.5", "0.99")


def audit_lines(report: AuditReport) -> Iterator[str]:
    """Each run with its findings, then the number of findings."""
    for run in report.files:
        yield f"{_title(run)}: {_figures(run.figures)}"
        for one in run.alarms:
            yield f"  {one.alarm}: {one.message}"
            yield f"    {one.arithmetic}"
            yield f"    fix: {one.fix}"
    if report.files:
        yield ""
        yield _count(report)


def _title(run: AuditedRun) -> str:
    parts = [part for part in (run.tool, run.part) if part is not None]
    name = one_line(run.file)
    return f"{name} ({', '.join(parts)})" if parts else name


def one_line(name: str) -> str:
    """A file name on one line, even if it contains a line break."""
    return name.replace("\n", "\\n")


def _figures(figures: Figures) -> str:
    """The figures that the file contains."""
    known = []
    if figures.connections is not None:
        known.append(plural(figures.connections, "connection"))
    if figures.duration_ns is not None:
        known.append(format_duration_ns(figures.duration_ns))
    if figures.requests is not None:
        known.append(plural(figures.requests, "response"))
    if figures.achieved_per_s is not None:
        known.append(format_per_s(figures.achieved_per_s))
    known += [
        f"{quantile_name(float(key))} {format_duration_ns(figures.quantiles_ns[key])}"
        for key in _SHOWN_QUANTILES
        if key in figures.quantiles_ns
    ]
    return ", ".join(known) or "no result"


def _count(report: AuditReport) -> str:
    findings = sum(len(run.alarms) for run in report.files)
    whole = plural(len(report.files), "result")
    if not findings:
        return f"no findings in {whole}"
    affected = sum(bool(run.alarms) for run in report.files)
    return (
        f"{plural(findings, 'finding')} in {affected:,} of {whole}; "
        "`wsgiload explain NAME` describes each"
    )
