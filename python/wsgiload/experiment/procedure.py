"""How the trials of an experiment follow each other, apart from what each of them measures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from wsgiload.units import NS_PER_S

Method = Literal["interval", "trim"]

USUAL_SETTLE_NS = 120 * NS_PER_S
USUAL_RERUNS = 3
# A quick look repeats a spoiled trial once, after a short wait for a quiet host.
RERUNS_OF_ONE_RUN = 1
SETTLE_BEFORE_RERUN_NS = 10 * NS_PER_S
# In a race a long wait takes the time of further rounds.
SETTLE_IN_RACE_NS = 10 * NS_PER_S
# Of the planned trials, so many may be made again because the host was disturbed; a host that is
# never quiet must not double the time.
MOST_REPEATED_SHARE = 0.2


def most_repeats(trials: int) -> int:
    """How many of so many planned trials may be made again because the host was disturbed."""
    return math.ceil(MOST_REPEATED_SHARE * trials)


@dataclass(frozen=True, slots=True)
class Procedure:
    """The longest wait for a quiet host before each trial, and how often a trial may be measured
    again.

    The defaults are those of a plain measurement: no wait, no rerun.
    """

    settle_ns: int = 0
    reruns: int = 0
    aggregate: Method = "interval"

    def settle_before_ns(self, attempt: int) -> int:
        """The longest wait before this attempt: there is one at least before a trial is made
        again."""
        return self.settle_ns if attempt == 1 else max(self.settle_ns, SETTLE_BEFORE_RERUN_NS)


def usual_procedure(
    runs: int,
    settle_ns: int | None = None,
    reruns: int | None = None,
    aggregate: Method = "interval",
) -> Procedure:
    """What is not given follows from the number of runs: one is a quick look, which does not wait
    before a first trial; several are an experiment."""
    is_experiment = runs > 1
    return Procedure(
        (USUAL_SETTLE_NS if is_experiment else 0) if settle_ns is None else settle_ns,
        (USUAL_RERUNS if is_experiment else RERUNS_OF_ONE_RUN) if reruns is None else reruns,
        aggregate,
    )
