"""Averages in a table that count runs without a result as 0."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

from wsgiload.audit.run import Run, alarm
from wsgiload.audit.tools.table import TABLE
from wsgiload.documents.audit import AuditAlarm
from wsgiload.findings.finding import Finding
from wsgiload.report.words import format_count, format_per_s

# Of the cell: how exactly an average reproduces it, and how much the zeros change it.
SAME_WITHIN = 0.001
MIN_CHANGE = 0.05
ZERO_AVERAGE = Finding(
    name="zero-average",
    examines="other tools' results: the averages in a table, compared with the runs",
    premise="A cell equals an average of the runs of that server and level only if runs without a "
    "result count as 0.",
    fix="leave out runs without a result and say how many, or repeat them",
)


def zero_averages(runs: Sequence[Run]) -> Iterator[tuple[Run, AuditAlarm]]:
    """Each cell of a table that averages in a 0 for a missing run."""
    measured = [run for run in runs if run.tool is not TABLE and run.figures.requests is not None]
    for cell in (run for run in runs if run.tool is TABLE):
        rates = [_rate(run) for run in measured if _is_of(run, cell)]
        value = cell.figures.achieved_per_s
        known = [rate for rate in rates if rate]
        if value is None or not known or len(known) == len(rates):
            continue
        with_zeros = next((one for one in _averages(rates) if _is_same(one, value)), None)
        without = [one for one in _averages(known) if abs(one - value) <= MIN_CHANGE * one]
        if with_zeros is not None and not without:
            yield cell, _alarm(value, rates, known)


def _rate(run: Run) -> float:
    return (run.figures.achieved_per_s or 0.0) if run.figures.requests else 0.0


def _is_of(run: Run, cell: Run) -> bool:
    """Whether the run's file has the server and the level of the cell in its name."""
    server = (cell.part.name or "").rpartition(" at ")[0].lower()
    words = re.split(r"[^a-z0-9]+", Path(run.file).stem.lower())
    of_server = re.split(r"[^a-z0-9]+", server)
    is_server = any(
        words[place : place + len(of_server)] == of_server for place in range(len(words))
    )
    return is_server and run.figures.connections == cell.figures.connections


def _averages(rates: Sequence[float]) -> list[float]:
    """The mean, and the mean without the lowest and the highest."""
    averages = [fmean(rates)]
    if len(rates) > 2:
        averages.append(fmean(sorted(rates)[1:-1]))
    return averages


def _is_same(average: float, value: float) -> bool:
    return abs(average - value) <= SAME_WITHIN * max(average, value)


def _alarm(value: float, rates: Sequence[float], known: Sequence[float]) -> AuditAlarm:
    missing = len(rates) - len(known)
    listed = ", ".join(format_per_s(rate) for rate in sorted(rates))
    return alarm(
        ZERO_AVERAGE,
        f"this average counts {format_count(missing)} of {format_count(len(rates))} runs, which "
        "have no result, as 0",
        arithmetic=f"runs: {listed}; table: {format_per_s(value)}; mean of the runs with a result: "
        f"{format_per_s(fmean(known))}",
        value=value,
        limit=fmean(known),
    )
