"""How the trials of an experiment follow each other, apart from what each of them measures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from wsgiload.units import NS_PER_S

Method = Literal["interval", "trim"]

USUAL_SETTLE_NS = 120 * NS_PER_S
USUAL_RERUNS = 3
# In a race a long wait takes the time of further rounds.
SETTLE_IN_RACE_NS = 10 * NS_PER_S


@dataclass(frozen=True, slots=True)
class Procedure:
    """The longest wait for a quiet host before each trial, and how often a trial may be measured
    again.

    The defaults are those of a quick look: no wait, no rerun.
    """

    settle_ns: int = 0
    reruns: int = 0
    aggregate: Method = "interval"


def usual_procedure(
    runs: int,
    settle_ns: int | None = None,
    reruns: int | None = None,
    aggregate: Method = "interval",
) -> Procedure:
    """What is not given follows from the number of runs: one is a quick look, several are an
    experiment."""
    is_experiment = runs > 1
    return Procedure(
        (USUAL_SETTLE_NS if is_experiment else 0) if settle_ns is None else settle_ns,
        (USUAL_RERUNS if is_experiment else 0) if reruns is None else reruns,
        aggregate,
    )
