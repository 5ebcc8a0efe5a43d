"""The lowest rate that a server did not sustain, or the rate that would show it. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from wsgiload.documents.answer import RankingEntry, RankingLevel
from wsgiload.documents.summary import Summary
from wsgiload.report import words
from wsgiload.report.levels import ranked

# A rate is suggested this far beyond the estimated capacity.
BEYOND_CAPACITY = 1.2


def saturation_sentence(summary: Summary, ranking: Sequence[RankingLevel]) -> str:
    """The lowest rate that a server did not sustain, or which rate to try if there is none."""
    rising = [level for level in reversed(ranking) if level.rate is not None]
    for level in rising:
        behind = [entry.label for entry in level.entries if entry.status == "overloaded"]
        if behind:
            are = "is" if len(behind) == 1 else "are"
            return (
                f"{words.join_names(behind)} {are} the first not to sustain the rate, "
                f"at {level.level}."
            )
    if not rising or not ranked(rising[-1]):
        return ""

    top = rising[-1]
    estimates = [_capacity_per_s(entry, top, summary) for entry in ranked(top)]
    known = [
        (capacity, entry.label)
        for capacity, entry in zip(estimates, ranked(top), strict=True)
        if capacity is not None
    ]
    if not known:
        return f"No server saturated at {top.level}."
    capacity, label = min(known)
    suggested = _round_up(capacity * BEYOND_CAPACITY)
    first = " first," if len(top.entries) > 1 else ""
    return (
        f"No server saturated at {top.level}. CPU use suggests that {label} would saturate{first} "
        f"near {words.format_per_s(_two_digits(capacity))} (try --rates {suggested:g})."
    )


def _capacity_per_s(entry: RankingEntry, level: RankingLevel, summary: Summary) -> float | None:
    """The rate at which its CPU limit is used up, assuming constant CPU time per request."""
    cores, limit = entry.cpu_cores_mean, summary.experiment.cpus
    if not cores or level.rate is None or limit is None:
        return None
    # Because of the GIL, a worker runs Python code on one core at a time.
    usable = min(limit, entry.workers) if entry.workers is not None else limit
    return level.rate * usable / cores


def _two_digits(value: float) -> float:
    return float(f"{value:.2g}")


def _round_up(value: float) -> float:
    step = 10.0 ** math.floor(math.log10(value)) / 2
    return math.ceil(value / step) * step
