"""The procedure of an experiment: waits before trials, reruns, and the aggregation of runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from wsgiload.units import NS_PER_S

Method = Literal["interval", "trim"]

USUAL_SETTLE_NS = 120 * NS_PER_S
USUAL_RERUNS = 3
# A single run repeats a disturbed trial once, after a short wait for a quiet host.
RERUNS_OF_ONE_RUN = 1
SETTLE_BEFORE_RERUN_NS = 10 * NS_PER_S
# The maximum share of planned trials that are repeated because the host was disturbed. A host that
# is never quiet must not double the duration.
MAX_RERUN_SHARE = 0.2


def max_reruns(trials: int) -> int:
    """The maximum number of reruns of disturbed trials, for this number of planned trials."""
    return math.ceil(MAX_RERUN_SHARE * trials)


@dataclass(frozen=True, slots=True)
class Procedure:
    """The maximum wait for a quiet host before each trial, the maximum number of reruns of a trial,
    and how runs are aggregated. By default, there is neither a wait nor a rerun."""

    settle_ns: int = 0
    reruns: int = 0
    aggregate: Method = "interval"

    def settle_before_ns(self, attempt: int) -> int:
        """The maximum wait before this attempt. Before a rerun, there is always a wait."""
        return self.settle_ns if attempt == 1 else max(self.settle_ns, SETTLE_BEFORE_RERUN_NS)


def usual_procedure(
    runs: int,
    settle_ns: int | None = None,
    reruns: int | None = None,
    aggregate: Method = "interval",
) -> Procedure:
    """The procedure, with defaults for this number of runs: a single run does not wait before a
    first attempt; several runs wait and are repeated more often."""
    is_experiment = runs > 1
    return Procedure(
        (USUAL_SETTLE_NS if is_experiment else 0) if settle_ns is None else settle_ns,
        (USUAL_RERUNS if is_experiment else RERUNS_OF_ONE_RUN) if reruns is None else reruns,
        aggregate,
    )
