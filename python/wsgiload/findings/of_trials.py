"""The findings about trials: those of the generator and of this package."""

from __future__ import annotations

from functools import cache

from wsgiload.findings import (
    alarms,
    external_counts,
    limiting_variable,
    over_cells,
    services,
    tails,
    trial,
    wrong_responses,
)
from wsgiload.findings.finding import Finding, findings_of, generator_checks


def alarm_records() -> tuple[Finding, ...]:
    """The alarms, in the order of the first screen."""
    return findings_of(wrong_responses, tails, alarms, services, limiting_variable, over_cells)


def check_records() -> tuple[Finding, ...]:
    """The checks of a load and of a sweep's trial."""
    return (*generator_checks(), *findings_of(external_counts, trial))


@cache
def of_trials() -> dict[str, Finding]:
    """Every finding about a trial by name. What happened to the server comes first."""
    return {one.name: one for one in (*alarm_records(), *check_records())}
