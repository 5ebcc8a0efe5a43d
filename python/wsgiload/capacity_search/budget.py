"""A capacity search within a budget: how long its trials are, and when it must stop looking. Pure,
apart from the clock."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from wsgiload.capacity_search.search import Goal
from wsgiload.errors import UsageError
from wsgiload.units import NS_PER_S

# One trial a rate, as long as the budget allows: near capacity a queue takes seconds to fill, and
# one long trial tells more than two short ones. Disturbed trials near the limit are repeated.
GOAL = Goal(width=0.04, trials=1, first_share=0.5)
# Of a bracket from half of the guess and a bisection to 4 %.
USUAL_TRIALS = 8
# A second confirmation, one width lower, and repeated trials. With so many of 5.3 s each, 55 of 60
# simulated searches of a queue with four threads (M/D/4) confirmed a rate, 46 of them within 5 %.
SPARE_TRIALS = 8
# The rest of a warm-up is worth less than a longer trial.
LONGEST_WARMUP_NS = NS_PER_S
# Shorter ones would measure how a server starts.
SHORTEST_TRIAL_S = 2.0
# The report, on a busy host.
REPORT_S = 5.0


def trial_s_within(budget_s: float, servers: int, around_s: float) -> float:
    """Seconds that a trial may measure, ``around_s`` being what it takes besides; at least 2."""
    trial_s = (budget_s - REPORT_S) / _usual_trials(servers) - around_s
    return max(SHORTEST_TRIAL_S, trial_s)


def require_enough(budget_s: float, servers: int, around_s: float) -> None:
    """Raise UsageError if a budget is too short for trials of 2 s."""
    least_s = _usual_trials(servers) * (SHORTEST_TRIAL_S + around_s) + REPORT_S
    if budget_s < least_s:
        raise UsageError(
            f"--budget is too short to search {servers} server{'' if servers == 1 else 's'}",
            f"use --budget {math.ceil(least_s / 60)}m",
        )


def _usual_trials(servers: int) -> int:
    return servers * (USUAL_TRIALS + GOAL.confirmations + SPARE_TRIALS)


@dataclass(slots=True)
class Clock:
    """What is left of a budget that began when the command was started."""

    budget_s: float
    began_s: float
    # What the confirmation of one server takes, once that is known.
    confirmation_s: float = 0.0
    clock_s: Callable[[], float] = field(default=time.monotonic)

    def left_s(self) -> float:
        """Seconds of the budget; negative once it is exceeded."""
        return self.budget_s - (self.clock_s() - self.began_s)

    def must_confirm(self, servers: int) -> bool:
        """Whether the searches of so many servers have only time left to confirm what they have."""
        return self.left_s() - REPORT_S < servers * self.confirmation_s
