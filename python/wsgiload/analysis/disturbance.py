"""Disturbances that can only lengthen response times, so a measurement remains usable as an upper
bound. Pure.

The response time of an open loop begins at the scheduled send time. A late generator, or a
processor used by others, therefore lengthens response times and never shortens them: in a FIFO
queue, later arrivals or slower service never end any service earlier. So an objective that was met
would also have been met without the disturbance; only a miss is in doubt.
"""

from __future__ import annotations

from collections.abc import Mapping

from wsgiload.documents.load_report import ErrorBudget, Verdict
from wsgiload.findings import trial
from wsgiload.findings.finding import findings_of, generator_checks
from wsgiload.units import duration_words


def only_lengthen() -> frozenset[str]:
    """The checks whose causes can only lengthen response times."""
    known = (*generator_checks(), *findings_of(trial))
    return frozenset(one.name for one in known if one.lengthens)


def disturbance_of(verdict: Verdict) -> str | None:
    """The disturbance that can only have lengthened response times, in words; None if there was
    none, or if the measurement is invalid for another reason."""
    invalid = [reason for reason in verdict.reasons if reason.level == "invalid"]
    if not {reason.check for reason in invalid} <= only_lengthen():
        return None

    disturbing = invalid or [
        reason for reason in verdict.reasons if reason.check == trial.CONTAMINATED.name
    ]
    return disturbing[0].message if disturbing else None


def delay_of(budgets: Mapping[str, ErrorBudget], quantile: str) -> int:
    """Nanoseconds that the generator may have added to a quantile that is only an upper bound;
    otherwise 0, because the quantile's bounds include them."""
    budget = budgets.get(quantile)
    if budget is None or budget.bound_status != "upper_bound":
        return 0
    least, value = budget.generator
    return value - least


def delay_words(figure: str, delay_ns: int) -> str:
    """The delay as a clause."""
    return f"the generator's delay may account for up to {duration_words(delay_ns)} of {figure}"
