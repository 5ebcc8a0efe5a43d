"""The question that an experiment answers. Pure, from a summary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from wsgiload.analysis.effective_limit import effective_limit
from wsgiload.analysis.races import race_at
from wsgiload.documents.answer import RankingLevel
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.summary import Summary
from wsgiload.report import words


def question_of(summary: Summary, level: RankingLevel | None) -> str:
    """The question of an experiment, about this load level."""
    experiment = summary.experiment
    inside = limits_words(summary)
    if experiment.slo:
        objective = " and ".join(experiment.slo)
        return f"Which server, with which settings, meets {objective} at the highest rate{inside}?"
    where = f" at {level.level}" if level is not None else ""
    count = _competitors(summary, level) if level is not None else 0
    figure = "the highest goodput" if level and level.rate is None else "the lowest p99"
    if count == 1 and level is not None:
        return f"How does {level.entries[0].label} perform{where}{inside}?"
    which = f"Which of {count} servers" if count else "Which server"
    return f"{which} has {figure}{where}{inside}?"


def _competitors(summary: Summary, level: RankingLevel) -> int:
    """The number of planned servers, including those that dropped out of a race or were not
    reached."""
    absent = len(words.servers_without_cells(summary))
    race = race_at(summary.races, level)
    if race is None:
        return len({entry.label for entry in level.entries}) + absent
    return len(race.contenders) + len(race.dropped_out) + absent


def limits_words(summary: Summary) -> str:
    """ " with 2 CPUs and 512 MiB"; only enforced limits are named."""
    cpus = _enforced_limit(summary.cells, "cpus")
    memory = _enforced_limit(summary.cells, "memory_bytes")
    limits = words.limits_words(cpus, memory)
    return f" with {limits}" if limits else ""


def _enforced_limit(
    cells: Sequence[CellResult], name: Literal["cpus", "memory_bytes"]
) -> float | None:
    """The limit if it was enforced equally in all cells that got as far as applying limits."""
    limits = {effective_limit(cell.limits, name) for cell in cells if cell.limits is not None}
    return limits.pop() if len(limits) == 1 else None
