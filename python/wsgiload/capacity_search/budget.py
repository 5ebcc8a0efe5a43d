"""The time budget of a capacity search: trial duration and deadline. Pure, apart from the clock."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from wsgiload.capacity_search.search import Goal
from wsgiload.errors import UsageError
from wsgiload.units import NS_PER_S

# One trial per rate, as long as the budget allows. Near capacity, a queue takes seconds to fill, so
# one long trial says more than two short ones. Disturbed trials near the limit are repeated.
GOAL = Goal(width=0.04, trials=1, first_share=0.5)
# The trials of a bracket that starts at half of the guess, and of a bisection to 4 %.
USUAL_TRIALS = 8
# The trials of a second confirmation, one width lower, and repeated trials. With this many trials
# of 5.3 s, 55 of 60 simulated searches of a queue with four threads (M/D/4) confirmed a rate, 46 of
# them within 5 % of the truth.
SPARE_TRIALS = 8
# A longer trial is worth more than a longer warm-up.
MAX_WARMUP_NS = NS_PER_S
# Shorter trials would measure the start of the server.
MIN_TRIAL_S = 2.0
# Time to write the report on a busy host.
REPORT_S = 5.0


def trial_s_within(budget_s: float, servers: int, around_s: float) -> float:
    """The duration of a trial in seconds, at least 2; ``around_s`` is the time that a trial takes
    in addition to its measurement."""
    trial_s = (budget_s - REPORT_S) / _usual_trials(servers) - around_s
    return max(MIN_TRIAL_S, trial_s)


def require_enough(budget_s: float, servers: int, around_s: float) -> None:
    """Raise UsageError if a budget is too short for trials of 2 s."""
    min_s = _usual_trials(servers) * (MIN_TRIAL_S + around_s) + REPORT_S
    if budget_s < min_s:
        raise UsageError(
            "--budget is too short for a capacity search on "
            f"{servers} server{'' if servers == 1 else 's'}",
            f"use --budget {math.ceil(min_s / 60)}m",
        )


def _usual_trials(servers: int) -> int:
    return servers * (USUAL_TRIALS + GOAL.confirmations + SPARE_TRIALS)


@dataclass(slots=True)
class Clock:
    """The remaining time of a budget that began with the command."""

    budget_s: float
    began_s: float
    # The time that the confirmation of one server takes, once it is known.
    confirmation_s: float = 0.0
    clock_s: Callable[[], float] = field(default=time.monotonic)

    def left_s(self) -> float:
        """Remaining seconds; negative once the budget is exceeded."""
        return self.budget_s - (self.clock_s() - self.began_s)

    def must_confirm(self, servers: int) -> bool:
        """Whether the remaining time only suffices for the confirmations of this many servers."""
        return self.left_s() - REPORT_S < servers * self.confirmation_s
