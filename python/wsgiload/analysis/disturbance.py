"""What disturbed a measurement without making it useless: findings that can only make responses
later. Pure.

The response time of an open loop begins at the intended send, whatever kept the request from
leaving then. A generator that was late, or a processor that somebody else had, therefore lengthens
response times and never shortens them: in a queue that serves in order, arrivals that come later,
or a server that is slower, never end any service earlier. So an objective that was met holds all
the more, and only one that was missed is in doubt.
"""

from __future__ import annotations

from collections.abc import Mapping

from wsgiload.documents.load_report import ErrorBudget, Verdict

# Others had the server's processors, as the orchestrator saw.
CONTAMINATED = "contaminated"
# Lateness of the generator, what it does to the sends, and its busy, waiting, throttled
# or stopped threads; CPU time that others took.
ONLY_LATER = frozenset(
    {
        "missed-sends",
        "send-lag",
        "send-lag-absolute",
        "client-cpu",
        "run-queue-wait",
        "client-throttling",
        "steal",
        "client-stalls",
        "poisson-gaps",
        CONTAMINATED,
    }
)


def disturbance_of(verdict: Verdict) -> str | None:
    """In words, what can only have made responses later; None where nothing did, or something worse
    happened too."""
    invalid = [reason for reason in verdict.reasons if reason.level == "invalid"]
    if not {reason.check for reason in invalid} <= ONLY_LATER:
        return None

    disturbing = invalid or [reason for reason in verdict.reasons if reason.check == CONTAMINATED]
    return disturbing[0].message if disturbing else None


def delay_of(budgets: Mapping[str, ErrorBudget], quantile: str) -> int:
    """Nanoseconds of a quantile that the generator may have added, where that makes it an upper
    bound only; otherwise 0, because the band of the quantile covers them."""
    budget = budgets.get(quantile)
    if budget is None or budget.bound_status != "upper_bound":
        return 0
    least, value = budget.generator
    return value - least


def delay_words(figure: str, delay_ns: int) -> str:
    """The same as a clause."""
    return f"the generator's delay may account for up to {delay_ns / 1e6:.3g} ms of {figure}"
